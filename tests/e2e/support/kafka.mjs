// SPDX-License-Identifier: MIT
// What the tests of Kafka routes share beside lib.mjs and kafka/broker.mjs:
// routes and workers, a handler for very many events, and what a store and a
// group's offsets must have to do with each other.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import readline from 'node:readline';
import { Worker, makeFolder, until } from '../lib.mjs';
import { run } from './fault.mjs';

// A sequence that is the same each time.
export function dice(seed = 1) {
  let state = seed;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// --- routes, workers, messages --------------------------------------------------------------------

export const message = (topic, partition, id, more = {}) =>
  ({ topic, partition, value: id, headers: [['event-id', id]], ...more });

// Messages of a topic for an HTTP handler. Its time-out is far, so that a
// slow machine makes no doubt.
export function kafkaRoute(handler, topics, group, more = {}) {
  const { http: settings, ...rest } = more;
  return {
    name: 'orders',
    source: { kafka: { topics, group } },
    id: 'kafka:header:event-id',
    handler: { http: { url: `http://127.0.0.1:${handler.port}/`, timeout: '60s', concurrency: 64, ...settings } },
    ...rest,
  };
}

// What a group gets to know fast, also of a death.
export const quick = {
  'session.timeout.ms': 3000, 'heartbeat.interval.ms': 300, 'max.poll.interval.ms': 10000, 'auto.commit.interval.ms': 100,
};

export function kafkaWorker(name, broker, routes, properties = {}) {
  return new Worker(makeFolder(name), {
    kafka: { 'bootstrap.servers': broker.servers, 'auto.commit.interval.ms': 100, ...properties },
    routes: [routes].flat(),
  });
}

// --- a handler ------------------------------------------------------------------------------------

// Remembers of each attempt of each event which process made it, when it came
// and when it was answered; nothing else, so that there may be very many.
// `delay(id)` is how long an attempt takes.
export class Tally {
  constructor(delay = () => 0) {
    this.delay = delay;
    this.attempts = new Map();
    this.running = 0;
    this.server = http.createServer((req, res) => this.#take(req, res));
    this.server.keepAliveTimeout = 60000;
  }

  async listen() {
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
    return this;
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  // When the event was answered first; never: Infinity.
  answered(id) {
    return Math.min(...(this.attempts.get(id) ?? []).map((attempt) => attempt.answered ?? Infinity), Infinity);
  }

  // [[id, attempts]] of those that came more than once.
  repeated() {
    return [...this.attempts].filter(([, attempts]) => attempts.length > 1);
  }

  #take(req, res) {
    const id = req.headers['onced-event-id'];
    const attempt = { process: req.headers['x-process'], at: Date.now() };
    const all = this.attempts.get(id);
    if (all) all.push(attempt);
    else this.attempts.set(id, [attempt]);
    req.resume();
    this.running++;
    setTimeout(() => {
      this.running--;
      attempt.answered = Date.now();
      res.writeHead(200).end();
    }, this.delay(id));
  }
}

// --- stores ---------------------------------------------------------------------------------------

// A line of the dump for each event of a store that nobody has open, a copy
// of one included.
export async function dumpOf(worker, store) {
  const file = path.join(worker.folder, `dump-${path.basename(store)}`);
  fs.rmSync(file, { force: true });
  fs.writeFileSync(`${file}.json`, JSON.stringify({ ...worker.config, store: { path: store } }));
  const { code, err } = await run(['dump', '-c', `${file}.json`, '-o', file]);
  assert.equal(code, 0, err);
  const events = [];
  for await (const line of readline.createInterface({ input: fs.createReadStream(file) })) {
    const event = JSON.parse(line);
    if (event.id !== undefined) events.push(event);
  }
  return events;
}

let copies = 0;
// The same of a worker that goes on meanwhile.
export async function dumpNow(worker) {
  const copy = path.join(worker.folder, `copy-${++copies}`);
  const { status, body } = await worker.admin('/v1/backup', 'POST', JSON.stringify({ path: copy }));
  assert.equal(status, 200, String(body));
  return dumpOf(worker, copy);
}

export const isSettled = (event) => ['SUCCEEDED', 'FAILED', 'DEAD'].includes(event.state);

// --- offsets --------------------------------------------------------------------------------------

// Where each partition of the topic stands, by number; 0 where nothing is
// committed.
export const offsetsOf = (offsets, topic, partitions) => Array.from({ length: partitions },
  (_, partition) => offsets.find((o) => o.topic === topic && o.partition === partition)?.offset ?? 0);

export async function caughtUp(broker, group, topic, ms = 60000) {
  const ends = (await broker.watermarks(topic)).map(({ partition, high }) => ({ topic, partition, offset: high }));
  await until(`group ${group} to have committed all of ${topic}`, async () => {
    const committed = await broker.committed(group);
    return ends.every(({ partition, offset }) => offset === 0 ||
      committed.some((c) => c.topic === topic && c.partition === partition && c.offset === offset));
  }, ms);
}

// Of what Broker.watchCommitted saw: calls `check(partition, offset, atMs)` for
// each offset that was passed, with the time at which that was known. No
// partition went back. Gives how many were passed.
export function eachCommitted(lines, topic, check) {
  const at = new Map();
  let passed = 0;
  for (const { offsets = [], at_wall_ms } of lines) {
    for (const { partition, offset } of offsets.filter((o) => o.topic === topic)) {
      const before = at.get(partition) ?? 0;
      assert.ok(offset >= before, `partition ${partition} went back from ${before} to ${offset}`);
      for (let passing = before; passing < offset; passing++) check(partition, passing, at_wall_ms);
      passed += offset - before;
      at.set(partition, offset);
    }
  }
  return passed;
}
