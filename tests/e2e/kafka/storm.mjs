// SPDX-License-Identifier: MIT
// Three workers of one group, each with a store of its own, that are killed,
// frozen past their session, stopped and started again under load; once for
// each protocol of rebalancing. No event is lost, and every second attempt is
// explained: its worker was killed, or its partition went to another store.
// Where they only come and go in order, and events in no order of keys, there
// is none.
//
//     node storm.mjs [KILLS] [ZOMBIES] [LEAVES] [SEED]

import assert from 'node:assert/strict';
import path from 'node:path';
import { until } from '../lib.mjs';
import { Tally, caughtUp, dice, dumpOf, eachCommitted, isSettled, kafkaRoute, kafkaWorker, message, offsetsOf, pause, quick }
  from '../support/kafka.mjs';
import { Broker, unique } from './broker.mjs';

const [kills = 10, zombies = 5, leaves = 4, seed = Date.now() % 1e6] = process.argv.slice(2).map(Number);
const random = dice(seed + 1);
const partitions = 8;
const keys = 400;
const perBatch = 250;
const broker = Broker.shared();
console.log(`seed ${seed}`);
process.setMaxListeners(50); // of its end: one for each folder

class Member {
  constructor(name, { topic, group, tally, properties, route = {} }) {
    this.name = name;
    this.starts = 0;
    this.ends = new Map(); // process: { kind, at }
    this.worker = kafkaWorker(`storm-${name}`, broker, kafkaRoute(tally, [topic], group, route), {
      'client.id': name, 'group.instance.id': '', ...properties,
    });
  }

  get process() {
    return `${this.name}/${this.starts}`;
  }

  async start() {
    this.starts++;
    const [{ handler }] = this.worker.config.routes;
    handler.http.headers = { 'X-Process': this.process };
    await this.worker.start();
  }

  async kill() {
    await this.worker.kill();
    this.ends.set(this.process, { kind: 'kill', at: Date.now() });
  }

  async stop() {
    assert.equal(await this.worker.stop(), 0);
    this.ends.set(this.process, { kind: 'stop', at: Date.now() });
  }
}

// The members of the group have all the partitions among them.
async function settleOn(group, members) {
  const names = members.map((m) => m.name).sort().join();
  await until(`the group to be ${names}`, async () => {
    const now = await broker.describe(group).catch(() => null);
    return now?.state === 'Stable' && now.members.map((m) => m.client).sort().join() === names &&
      now.members.reduce((n, m) => n + m.partitions.length, 0) === partitions;
  }, 60000);
}

// Writes batches as fast as they are handled, until told to end. Messages of
// one key are in one partition.
class Producer {
  constructor(topic, tally) {
    Object.assign(this, { topic, tally, sent: [], logs: Array.from({ length: partitions }, () => []) });
    this.isEnding = false;
    this.ended = this.#run();
  }

  async #run() {
    while (!this.isEnding) {
      const batch = Array.from({ length: perBatch }, () => this.#next());
      assert.equal(await broker.produceMany(batch), perBatch);
      await until('the workers to catch up a little', () => this.sent.length - this.tally.attempts.size < 20 * perBatch || this.isEnding);
    }
  }

  #next() {
    const n = this.sent.length;
    const key = Math.floor(random() * keys);
    const event = { id: `e-${n}`, key: `k-${key}`, partition: key % partitions };
    event.offset = this.logs[event.partition].push(event.id) - 1;
    this.sent.push(event);
    return message(this.topic, event.partition, event.id, { key: event.key });
  }

  async end() {
    this.isEnding = true;
    await this.ended;
  }
}

// Each second attempt, by what explains it; fails for one that nothing does.
function explain(tally, members) {
  const counts = { kill: 0, moved: 0, movedAfterDeath: 0, movedAfterFreeze: 0 };
  const ends = new Map(members.flatMap((m) => [...m.ends]));
  const frozen = members.flatMap((m) => m.frozen ?? []);
  for (const [id, attempts] of tally.repeated()) {
    const last = new Map(); // of each store
    for (const attempt of attempts) {
      const store = attempt.process.split('/')[0];
      const before = last.get(store);
      const told = () => `${id}: ${JSON.stringify(attempts)}`;
      if (before) {
        const end = ends.get(before.process);
        assert.notEqual(before.process, attempt.process, told());
        assert.ok(end?.kind === 'kill' && end.at <= attempt.at, told());
        counts.kill++;
      } else if (last.size > 0) {
        const previous = [...last.values()].at(-1);
        const end = ends.get(previous.process);
        counts.moved++;
        if (end?.kind === 'kill' && end.at <= attempt.at) counts.movedAfterDeath++;
        else if (frozen.some((f) => f.process === previous.process && f.from <= attempt.at)) counts.movedAfterFreeze++;
      }
      last.delete(store);
      last.set(store, attempt);
    }
  }
  return counts;
}

// Within a process events of one key are handled one after another, as they
// stand in the log.
function checkOrder(tally, sent) {
  const lanes = new Map();
  for (const { id, key, offset } of sent) {
    for (const { process, at, answered } of tally.attempts.get(id)) {
      const lane = `${process} ${key}`;
      if (!lanes.has(lane)) lanes.set(lane, []);
      lanes.get(lane).push({ id, offset, at, answered });
    }
  }
  for (const [lane, attempts] of lanes) {
    attempts.sort((a, b) => a.offset - b.offset);
    attempts.forEach((attempt, i) => i === 0 ||
      assert.ok(attempt.at >= attempts[i - 1].answered, `${lane}: ${JSON.stringify(attempts.slice(i - 1, i + 1))}`));
  }
}

async function storm(strategy, plan) {
  const [topic, group] = [unique('storm'), unique('storm')];
  await broker.create(`${topic}:${partitions}`);
  const tally = await new Tally(() => Math.random() * 60).listen();
  const properties = { ...quick, 'partition.assignment.strategy': strategy };
  const members = ['a', 'b', 'c'].map((name) => new Member(name, { topic, group, tally, properties }));
  const others = (member) => members.filter((m) => m !== member);
  let rebalances = 0;
  const changed = async (now) => {
    await settleOn(group, now);
    rebalances++;
  };

  for (const [i, member] of members.entries()) {
    await member.start();
    await changed(members.slice(0, i + 1));
  }
  const { assignor } = await broker.describe(group);
  assert.equal(assignor, strategy.split(',')[0]);
  const began = Date.now();
  const watch = broker.watchCommitted(group, 100);
  const producer = new Producer(topic, tally);

  const actions = {
    async kill(member) {
      await member.kill();
      await changed(others(member));
      await member.start();
      await changed(members);
    },
    async leave(member) {
      await member.stop();
      await changed(others(member));
      await member.start();
      await changed(members);
    },
    async freeze(member) {
      const { child } = member.worker;
      child.kill('SIGSTOP');
      (member.frozen ??= []).push({ process: member.process, from: Date.now() });
      await changed(others(member));
      await pause(random() * 1500); // others do its work meanwhile
      child.kill('SIGCONT');
      await changed(members);
    },
  };
  while (plan.length > 0) {
    const [name] = plan.splice(Math.floor(random() * plan.length), 1);
    const busy = tally.attempts.size;
    await until('work', () => tally.attempts.size > busy + perBatch);
    await actions[name](members[Math.floor(random() * members.length)]);
  }

  // --- all comes to rest --------------------------------------------------------------------------

  await producer.end();
  const { sent, logs } = producer;
  await until('every event', () => sent.every((e) => tally.attempts.has(e.id)) && tally.running === 0, 60000);
  await caughtUp(broker, group, topic);
  const seconds = Math.round((Date.now() - began) / 1000);
  const lines = await watch.stop();

  // Alone with all partitions, each finds out about all that it had to let go.
  for (const member of members) await member.stop();
  for (const member of members) {
    await member.start();
    await changed([member]);
    await member.worker.settled('orders');
    await member.stop();
  }
  assert.equal(tally.running, 0);

  const succeeded = new Set();
  let records = 0;
  for (const { worker } of members) {
    const events = await dumpOf(worker, path.join(worker.folder, 'store'));
    records += events.length;
    for (const event of events) {
      assert.ok(isSettled(event), JSON.stringify(event));
      assert.ok(event.state === 'SUCCEEDED' || event.reason === 'moved', JSON.stringify(event));
      if (event.state === 'SUCCEEDED') succeeded.add(event.id);
    }
  }
  assert.deepEqual(sent.filter((e) => !succeeded.has(e.id)), []);
  let early = 0;
  eachCommitted(lines, topic, (partition, offset, at) => {
    if (tally.answered(logs[partition][offset]) > at) early++;
  });
  assert.equal(early, 0, `${early} offsets were committed before their events were settled`);
  checkOrder(tally, sent);
  const counts = explain(tally, members);
  const attempts = [...tally.attempts.values()].reduce((n, a) => n + a.length, 0);
  assert.equal(attempts, sent.length + counts.kill + counts.moved);
  await tally.close();
  console.log(`${strategy}: ${sent.length} events in ${seconds} s, ${rebalances} rebalances: 0 lost; ` +
    `${attempts - sent.length} second attempts: ${counts.kill} by a kill, ${counts.moved} by another store (` +
    `${counts.movedAfterDeath} after a kill, ${counts.movedAfterFreeze} after a freeze, ` +
    `${counts.moved - counts.movedAfterDeath - counts.movedAfterFreeze} else); ${records} records`);
  return rebalances;
}

// Each gives up what it has in order, and the next begins where it ended.
async function comeAndGo(strategy, rounds) {
  const [topic, group] = [unique('order'), unique('order')];
  await broker.create(`${topic}:${partitions}`);
  const tally = await new Tally(() => Math.random() * 60).listen();
  // Nobody is thought dead, however slow the machine is.
  const properties = { ...quick, 'session.timeout.ms': 30000, 'max.poll.interval.ms': 60000, 'partition.assignment.strategy': strategy };
  const members = ['a', 'b', 'c'].map((name) =>
    new Member(name, { topic, group, tally, properties, route: { order_by: 'none' } }));
  const here = [members[0]];
  await members[0].start();
  await settleOn(group, here);
  const producer = new Producer(topic, tally);
  const offsets = async () => offsetsOf(await broker.committed(group), topic, partitions);
  for (let i = 1; i <= 2 * rounds; i++) {
    const before = await offsets();
    await until('each partition to go on', async () => (await offsets()).every((now, p) => now > before[p] + 32));
    if (i % 2 === 0) {
      await here.shift().stop();
    } else {
      here.push(members[((i + 1) / 2) % 3]);
      await here.at(-1).start();
    }
    await settleOn(group, here);
  }
  await producer.end();
  const { sent } = producer;
  await until('every event', () => sent.every((e) => tally.attempts.has(e.id)) && tally.running === 0, 60000);
  await caughtUp(broker, group, topic);
  for (const member of here) await member.stop();
  assert.deepEqual(tally.repeated().slice(0, 3), [], `${tally.repeated().length} events were handled twice`);
  await tally.close();
  console.log(`${strategy}, in order: ${sent.length} events, ${2 * rounds} rebalances: each handled once`);
}

const plan = (k, z, l) => [...Array(k).fill('kill'), ...Array(z).fill('freeze'), ...Array(l).fill('leave')];
const rebalances = await storm('range', plan(kills, zombies, leaves));
if (process.argv.length <= 2) assert.ok(rebalances >= 30, `only ${rebalances} rebalances`);
await storm('cooperative-sticky', plan(Math.ceil(kills / 4), Math.ceil(zombies / 4), Math.ceil(leaves / 2)));
for (const strategy of ['range', 'cooperative-sticky']) await comeAndGo(strategy, leaves);
