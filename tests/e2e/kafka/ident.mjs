// SPDX-License-Identifier: MIT
// Messages whose position is their id, and a log that does not stay what it
// was: a topic that is made again (while the worker runs, and while it does
// not), messages that were deleted before they were read, and a group whose
// offsets are set back. New messages are handled, nothing twice, and the log
// says what happened.

import assert from 'node:assert/strict';
import { metric } from '../support/fault.mjs';
import { caughtUp, kafkaRoute, kafkaWorker, quick } from '../support/kafka.mjs';
import { Handler, until } from '../lib.mjs';
import { Broker, unique } from './broker.mjs';

const broker = Broker.shared();
const [topic, group] = [unique('ident'), unique('ident')];
await broker.create(topic);
const handler = await new Handler().listen();
const worker = kafkaWorker('ident', broker, kafkaRoute(handler, [topic], group, { id: 'kafka:position' }), {
  ...quick, 'topic.metadata.refresh.interval.ms': 500,
});
const produce = (name, n) => broker.produceMany(Array.from({ length: n }, (_, i) => ({ topic, partition: 0, value: `${name}-${i}` })));
const all = []; // [id, value], as they are to be handled

// All of it, at these offsets of the topic's incarnation, and nothing else.
async function expect(name, offsets, incarnation = 0) {
  for (const [i, offset] of offsets.entries()) {
    all.push([`${topic}/0/${offset}${incarnation > 0 ? `~${incarnation}` : ''}`, `${name}-${i}`]);
  }
  await until(`the messages "${name}"`, () => handler.invocations.length >= all.length);
  await caughtUp(broker, group, topic);
  assert.deepEqual(handler.invocations.map((i) => [i.id, String(i.body)]).sort(), [...all].sort());
}

const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const said = (text) => worker.log().split(text).length - 1;
const anomalies = (kind) => metric(worker, `onced_kafka_anomalies_total{group="${group}",kind="${kind}"}`);

async function leave() {
  assert.equal(await worker.stop(), 0);
  await until('the group to be empty', async () => (await broker.describe(group)).members.length === 0);
}

// --- positions ------------------------------------------------------------------------------------

await worker.start();
await produce('first', 20);
await expect('first', range(0, 20));
await leave();
await worker.start();
await produce('second', 5);
await expect('second', range(20, 25));

// --- the topic is made again ----------------------------------------------------------------------

await broker.recreate(topic);
await produce('while it runs', 8);
await expect('while it runs', range(0, 8), 1);
assert.ok(said('made anew') > 0, worker.log());
await leave();

const told = said('the topic was made anew');
await broker.recreate(topic);
await produce('while it does not', 3);
await worker.start();
await expect('while it does not', range(0, 3), 2);
assert.equal(said('the topic was made anew'), told + 1);

// --- what was not read is gone --------------------------------------------------------------------

await leave();
await produce('gone', 10);
await broker.deleteRecords({ topic, partition: 0, offset: 13 });
await produce('left', 4);
await worker.start();
await expect('left', range(13, 17), 2);
assert.equal(said('messages were deleted before they came here'), 1);
assert.equal(await anomalies('gap'), 1);

// --- the group is set back ------------------------------------------------------------------------

await leave();
await broker.setOffsets(group, { topic, partition: 0, offset: 14 });
await produce('after', 2);
await worker.start();
await expect('after', range(17, 19), 2);
assert.equal(said("the group's offset lies before what is settled here"), 1);
assert.equal(await anomalies('rewound'), 1);
assert.equal((await worker.counts('orders')).succeeded, all.length);
assert.equal(await worker.stop(), 0);
await handler.close();
console.log(`${all.length} messages, each handled once`);
