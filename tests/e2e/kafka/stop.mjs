// SPDX-License-Identifier: MIT
// SIGTERM under load: what is committed then is exactly what is settled, so
// that the next start handles nothing twice; as a static member and as a
// dynamic one, for both protocols of rebalancing. And a second worker under
// the same group.instance.id ends the first one, which says why.

import assert from 'node:assert/strict';
import path from 'node:path';
import { until } from '../lib.mjs';
import { Tally, caughtUp, dumpOf, eachCommitted, isSettled, kafkaRoute, kafkaWorker, message, offsetsOf, quick }
  from '../support/kafka.mjs';
import { Broker, unique } from './broker.mjs';

const broker = Broker.shared();
const partitions = 4;
const total = 4000;
const stops = 4;

async function stopUnderLoad(properties) {
  const [topic, group] = [unique('stop'), unique('stop')];
  await broker.create(`${topic}:${partitions}`);
  const logs = Array.from({ length: partitions }, () => []);
  const messages = Array.from({ length: total }, (_, n) => {
    logs[n % partitions].push(`e-${n}`);
    return message(topic, n % partitions, `e-${n}`);
  });
  assert.equal(await broker.produceMany(messages), total);

  // From 0 to 100 ms: they end in another order than they began.
  const tally = await new Tally(() => Math.random() * 100).listen();
  const worker = kafkaWorker('stop', broker, kafkaRoute(tally, [topic], group), { ...quick, ...properties });
  const watch = broker.watchCommitted(group, 50);
  for (let i = 1; i <= stops; i++) {
    await worker.start();
    const enough = (total * i) / (stops + 1);
    await until(`${enough} events`, () => tally.attempts.size >= enough);
    assert.equal(await worker.stop(), 0);
    assert.equal(tally.running, 0);

    // Each partition's offset is the first that is not settled.
    const settled = new Set((await dumpOf(worker, path.join(worker.folder, 'store'))).filter(isSettled).map((e) => e.id));
    const expected = logs.map((log) => log.findIndex((id) => !settled.has(id))).map((at, p) => (at < 0 ? logs[p].length : at));
    assert.deepEqual(offsetsOf(await broker.committed(group), topic, partitions), expected);
    for (const id of settled) assert.ok(tally.answered(id) <= Date.now());
    assert.equal(settled.size, tally.attempts.size);
  }
  await worker.start();
  await until('every event', () => tally.attempts.size === total && tally.running === 0);
  await caughtUp(broker, group, topic);
  assert.deepEqual(tally.repeated(), []);
  let early = 0;
  eachCommitted(await watch.stop(), topic, (partition, offset, at) => {
    if (tally.answered(logs[partition][offset]) > at) early++;
  });
  assert.equal(early, 0, `${early} offsets were committed before their events were settled`);
  assert.equal((await worker.counts('orders')).succeeded, total);
  assert.equal(await worker.stop(), 0);
  await tally.close();
}

await stopUnderLoad({});
await stopUnderLoad({ 'group.instance.id': '', 'partition.assignment.strategy': 'cooperative-sticky' });

// --- two of one name ------------------------------------------------------------------------------

const [topic, group] = [unique('static'), unique('static')];
await broker.create(`${topic}:${partitions}`);
const tally = await new Tally().listen();
const [first, second] = ['first', 'second'].map((name) =>
  kafkaWorker(name, broker, kafkaRoute(tally, [topic], group), { ...quick, 'group.instance.id': 'one' }));
await first.start();
assert.equal(await broker.produceMany([message(topic, 0, 'before')]), 1);
await caughtUp(broker, group, topic);
assert.deepEqual((await broker.describe(group)).members.map((m) => m.instance), ['one']);
await second.start();
const code = await first.exited;
assert.notEqual(code, 0);
assert.match(first.log(), /another member has its group\.instance\.id/);
assert.doesNotMatch(first.log(), /did not close in time/);
assert.equal(await broker.produceMany([message(topic, 1, 'after')]), 1);
await until('the second to go on', () => tally.attempts.has('after'));
assert.equal(await second.stop(), 0);
assert.deepEqual(tally.repeated(), []);
await tally.close();
console.log(`2 x ${total} events over ${stops} stops each, each handled once; the first of two of one name ended with ${code}`);
