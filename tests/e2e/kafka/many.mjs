// SPDX-License-Identifier: MIT
// Very many messages, a fifth of them repeats (soon after the first or long
// after, in its partition or another), for a handler that ends in any order:
// each event is handled once, and whenever an offset was committed, everything
// below it was settled. Told from outside (what the handler answered before
// the commit was seen) and from the store (a copy taken while it works).
//
//     node many.mjs [MESSAGES] [SEED]

import assert from 'node:assert/strict';
import path from 'node:path';
import { until } from '../lib.mjs';
import { metric } from '../support/fault.mjs';
import { Tally, caughtUp, dice, dumpNow, dumpOf, eachCommitted, isSettled, kafkaRoute, kafkaWorker, message, offsetsOf }
  from '../support/kafka.mjs';
import { Broker, unique } from './broker.mjs';

const total = Number(process.argv[2] ?? 200000);
const random = dice(Number(process.argv[3] ?? 7));
const partitions = 8;
const looks = 3;

const broker = Broker.shared();
const [topic, group] = [unique('many'), unique('many')];
await broker.create(`${topic}:${partitions}`);

// --- the messages ---------------------------------------------------------------------------------

const pick = (n) => Math.floor(random() * n);
const ids = []; // in the order in which they are sent first
const logs = Array.from({ length: partitions }, () => []); // ids by offset

function nextId() {
  if (ids.length === 0 || random() >= 0.2) return ids[ids.push(`e-${ids.length}`) - 1];
  const back = random() < 0.5 ? pick(Math.min(ids.length, 64)) : pick(ids.length);
  return ids[ids.length - 1 - back];
}

const messages = Array.from({ length: total }, () => {
  const id = nextId();
  const partition = pick(partitions);
  logs[partition].push(id);
  return message(topic, partition, id);
});

// --- the run --------------------------------------------------------------------------------------

const tally = await new Tally(() => Math.random() * 20).listen();
const worker = kafkaWorker('many', broker, kafkaRoute(tally, [topic], group, { http: { concurrency: 256 } }));
await worker.start();
const began = Date.now();
const watch = broker.watchCommitted(group, 50);
const produced = broker.produceMany(messages);

// What is committed before a copy is begun is settled in the copy.
async function look(settled) {
  await until(`${settled} events`, () => tally.attempts.size >= settled, 300000);
  const committed = offsetsOf(await broker.committed(group), topic, partitions);
  const done = new Map((await dumpNow(worker)).map((event) => [event.id, event]));
  committed.forEach((offset, partition) => logs[partition].slice(0, offset).forEach((id, at) =>
    assert.ok(done.has(id) && isSettled(done.get(id)), `${id} at ${partition}/${at} is below ${offset}, and not settled`)));
  const ahead = logs.reduce((n, log, p) => n + log.slice(committed[p]).filter((id) => done.get(id)?.state === 'SUCCEEDED').length, 0);
  console.log(`${done.size} events in the copy, ${committed.reduce((a, b) => a + b)} messages committed, ${ahead} settled beyond them`);
}

for (let i = 1; i <= looks; i++) await look((ids.length * i) / (looks + 1));
assert.equal(await produced, total);
await until('every event', () => tally.attempts.size === ids.length && tally.running === 0, 300000);
await caughtUp(broker, group, topic);
const seconds = (Date.now() - began) / 1000;
const lines = await watch.stop();

// --- what came of it ------------------------------------------------------------------------------

assert.deepEqual(tally.repeated(), []);
let early = 0;
const passed = eachCommitted(lines, topic, (partition, offset, at) => {
  if (tally.answered(logs[partition][offset]) > at) early++;
});
assert.equal(early, 0, `${early} offsets were committed before their events were settled`);
assert.equal(passed, total);
assert.ok(lines.length > 20, `only ${lines.length} looks at the offsets`);
assert.equal((await worker.counts('orders')).succeeded, ids.length);
assert.equal(await metric(worker, 'onced_deliveries_total{route="orders",outcome="accepted"}'), ids.length);
assert.equal(await metric(worker, 'onced_deliveries_total{route="orders",outcome="duplicate"}'), total - ids.length);
for (const kind of ['rewound', 'gap', 'refused']) {
  assert.equal(await metric(worker, `onced_kafka_anomalies_total{group="${group}",kind="${kind}"}`), 0, kind);
}
assert.equal(await worker.stop(), 0);

const events = await dumpOf(worker, path.join(worker.folder, 'store'));
assert.equal(events.length, ids.length);
assert.deepEqual(events.filter((e) => e.state !== 'SUCCEEDED' || e.attempts !== 1), []);
assert.equal(events.reduce((n, e) => n + e.deliveries, 0), total);
await tally.close();
console.log(`${total} messages, ${ids.length} events, each handled once; ${lines.length} looks at the offsets; ` +
  `${seconds} s, ${Math.round(total / seconds)} messages/s`);
