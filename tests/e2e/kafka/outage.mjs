// SPDX-License-Identifier: MIT
// What happens to brokers and to a worker's own time: nodes of three go one
// after another and their leaders move, all are gone for a minute, and the
// worker is frozen for longer than its group waits, once as a static member and
// once as a dynamic one. It catches up by itself; nothing is lost, and no event
// is attempted twice.
//
//     node outage.mjs [SECONDS]

import assert from 'node:assert/strict';
import path from 'node:path';
import { until } from '../lib.mjs';
import { Tally, caughtUp, dumpOf, eachCommitted, kafkaRoute, kafkaWorker, message, pause, quick } from '../support/kafka.mjs';
import { Cluster, unique } from './broker.mjs';

const outageSeconds = Number(process.argv[2] ?? 60);
const partitions = 6;
const perBatch = 200;
const cluster = await Cluster.start();
const [topic, group] = [unique('outage'), unique('outage')];
await cluster.create(`${topic}:${partitions}:3`);

const tally = await new Tally(() => Math.random() * 20).listen();
const worker = kafkaWorker('outage', cluster, kafkaRoute(tally, [topic], group), {
  ...quick, 'session.timeout.ms': 4000, 'max.poll.interval.ms': 5000,
});
let sent = 0;
const logs = Array.from({ length: partitions }, () => []);

function batch() {
  return Array.from({ length: perBatch }, () => {
    const partition = sent % partitions;
    const id = `e-${sent++}`;
    logs[partition].push(id);
    return message(topic, partition, id);
  });
}

const load = async () => assert.equal(await cluster.produceMany(batch()), perBatch);
const handled = (what, n = sent, ms = 60000) => until(what, () => tally.attempts.size >= n, ms);

await worker.start();
await load();
await handled('the first events');
const watch = cluster.watchCommitted(group, 100);

// --- leaders move ---------------------------------------------------------------------------------

// Messages are under way while a node stops, and while it comes back.
for (const [id, end] of [[1, 'stopNode'], [2, 'stopNode'], [3, 'killNode']]) {
  const during = load();
  await cluster[end](id);
  await during;
  await load();
  await handled(`all without node ${id}`);
  await Promise.all([cluster.startNode(id), load()]);
  await handled(`all with node ${id} back`);
}
console.log(`${sent} events, the leaders moved: ${tally.repeated().length} twice`);

// --- nobody answers -------------------------------------------------------------------------------

// Some are with the handler as the brokers go, and end while they are gone.
await load();
await until('some to be under way', () => tally.running > 0 || tally.attempts.size === sent);
const gone = Date.now();
await Promise.all([1, 2, 3].map((id) => cluster.killNode(id)));
await until('the handlers to be done', () => tally.running === 0);
await pause(outageSeconds * 1000 - (Date.now() - gone));
assert.equal((await worker.admin('/readyz')).status, 200);
await cluster.script('up');
const back = Date.now();
await load();
await handled('all after the outage', sent, 120000);
console.log(`gone for ${Math.round((back - gone) / 1000)} s; all handled ${Math.round((Date.now() - back) / 1000)} s after`);

// --- the worker does not run ----------------------------------------------------------------------

async function freeze() {
  const { child } = worker;
  await load();
  await until('some to be under way', () => tally.running > 0 || tally.attempts.size === sent);
  child.kill('SIGSTOP');
  await until('the group to have lost it', async () => {
    const now = await cluster.describe(group).catch(() => null);
    return now !== null && now.members.length === 0;
  });
  await pause(2000); // past max.poll.interval.ms, too
  await load();
  child.kill('SIGCONT');
  await handled('all after the freeze');
  await caughtUp(cluster, group, topic);
}

await freeze();
assert.match(worker.log(), /did not run for longer than its group waits|partitions were lost/);
assert.equal(await worker.stop(), 0);
worker.config.kafka['group.instance.id'] = '';
await worker.start();
await freeze();

// --- what came of it ------------------------------------------------------------------------------

await caughtUp(cluster, group, topic);
let early = 0;
eachCommitted(await watch.stop(), topic, (partition, offset, at) => {
  if (tally.answered(logs[partition][offset]) > at) early++;
});
assert.equal(early, 0, `${early} offsets were committed before their events were settled`);
assert.deepEqual(tally.repeated(), []);
assert.equal(tally.attempts.size, sent);
assert.equal(await worker.stop(), 0);
const events = await dumpOf(worker, path.join(worker.folder, 'store'));
assert.equal(events.length, sent);
assert.deepEqual(events.filter((e) => e.state !== 'SUCCEEDED' || e.attempts !== 1), []);
await tally.close();
console.log(`${sent} events, each handled once`);
