// SPDX-License-Identifier: MIT
// What happens to brokers and to a worker's own time: nodes of three go one
// after another and their leaders move; the only broker is gone for a minute;
// the worker is frozen for longer than its group waits, once as a static member
// and once as a dynamic one. It catches up by itself; nothing is lost, and no
// event is attempted twice.
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

// A cluster, a worker that reads from it, and what both have done.
class Scene {
  static async start(name, nodes) {
    const scene = new Scene();
    Object.assign(scene, { name, topic: unique(name), group: unique(name), sent: 0 });
    scene.logs = Array.from({ length: partitions }, () => []);
    scene.cluster = await Cluster.start({ nodes });
    await scene.cluster.create(`${scene.topic}:${partitions}`);
    scene.tally = await new Tally(() => Math.random() * 20).listen();
    scene.worker = kafkaWorker(name, scene.cluster, kafkaRoute(scene.tally, [scene.topic], scene.group), {
      ...quick, 'session.timeout.ms': 4000, 'max.poll.interval.ms': 5000,
    });
    await scene.worker.start();
    await scene.load();
    await scene.handled('the first events');
    scene.watch = scene.cluster.watchCommitted(scene.group, 100);
    return scene;
  }

  async load() {
    const batch = Array.from({ length: perBatch }, () => {
      const partition = this.sent % partitions;
      const id = `e-${this.sent++}`;
      this.logs[partition].push(id);
      return message(this.topic, partition, id);
    });
    assert.equal(await this.cluster.produceMany(batch), perBatch);
  }

  // Some events are with the handler, or it was too fast.
  async loaded() {
    await this.load();
    await until('some to be under way', () => this.tally.running > 0 || this.tally.attempts.size === this.sent);
  }

  handled(what) {
    return until(`${this.name}: ${what}`, () => this.tally.attempts.size >= this.sent, 120000);
  }

  async finish() {
    const { cluster, group, topic, tally, worker, sent } = this;
    await caughtUp(cluster, group, topic);
    let early = 0;
    eachCommitted(await this.watch.stop(), topic, (partition, offset, at) => {
      if (tally.answered(this.logs[partition][offset]) > at) early++;
    });
    assert.equal(early, 0, `${early} offsets were committed before their events were settled`);
    assert.deepEqual(tally.repeated(), []);
    assert.equal(tally.attempts.size, sent);
    assert.equal(await worker.stop(), 0);
    const events = await dumpOf(worker, path.join(worker.folder, 'store'));
    assert.equal(events.length, sent);
    assert.deepEqual(events.filter((e) => e.state !== 'SUCCEEDED' || e.attempts !== 1), []);
    await tally.close();
  }
}

// --- leaders move ---------------------------------------------------------------------------------

// Messages are under way while a node goes, and while it comes back.
async function leadersMove() {
  const scene = await Scene.start('leaders', 3);
  const { cluster } = scene;
  for (const [id, end] of [[1, 'stopNode'], [2, 'stopNode'], [3, 'killNode']]) {
    await Promise.all([scene.load(), cluster[end](id)]);
    await scene.load();
    await scene.handled(`all without node ${id}`);
    await Promise.all([scene.load(), cluster.startNode(id)]);
    await scene.handled(`all with node ${id} back`);
  }
  await scene.finish();
  return `${scene.sent} events while 3 nodes went and came back`;
}

// --- nobody answers, and the worker does not run --------------------------------------------------

// The handler's answers come while the broker is gone.
async function beGone(scene) {
  await scene.loaded();
  const gone = Date.now();
  await scene.cluster.killNode(1);
  await until('the handlers to be done', () => scene.tally.running === 0);
  await pause(outageSeconds * 1000 - (Date.now() - gone));
  assert.equal((await scene.worker.admin('/readyz')).status, 200);
  await scene.cluster.startNode(1);
  const back = Date.now();
  await scene.load();
  await scene.handled('all after the outage');
  return `gone for ${Math.round((back - gone) / 1000)} s and caught up after ${((Date.now() - back) / 1000).toFixed(1)} s`;
}

async function freeze(scene) {
  const { cluster, group, worker } = scene;
  const { child } = worker;
  await scene.loaded();
  child.kill('SIGSTOP');
  await until('the group to have lost it', async () => {
    const now = await cluster.describe(group).catch(() => null);
    return now !== null && now.members.length === 0;
  });
  await pause(2000); // past max.poll.interval.ms, too
  await scene.load();
  child.kill('SIGCONT');
  await scene.handled('all after the freeze');
  await caughtUp(cluster, group, scene.topic);
}

async function brokerIsGone() {
  const scene = await Scene.start('outage', 1);
  const { worker } = scene;
  const told = await beGone(scene);
  await freeze(scene);
  assert.match(worker.log(), /did not run for longer than its group waits|partitions were lost/);
  assert.equal(await worker.stop(), 0);
  worker.config.kafka['group.instance.id'] = '';
  await worker.start();
  await freeze(scene);
  await scene.finish();
  return `${scene.sent} events: the broker ${told}; two freezes`;
}

const told = await Promise.all([leadersMove(), brokerIsGone()]);
console.log(`${told.join('\n')}\neach handled once`);
