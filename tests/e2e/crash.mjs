// SPDX-License-Identifier: MIT
// kill -9 at random moments under load, then restart, many times. No event
// that was acknowledged is lost, no attempt is made that a logged crash or a
// recorded retry does not explain, and the store verifies every time.
//
//     node crash.mjs [ROUNDS] [SEED]

import assert from 'node:assert/strict';
import http from 'node:http';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder } from './lib.mjs';

const rounds = Number(process.argv[2] ?? 200);
let seed = Number(process.argv[3] ?? Date.now() % 1e9);
console.log(`rounds ${rounds}, seed ${seed}`);
const random = () => ((seed = (seed * 48271) % 2147483647) / 2147483647);

const handler = await new Handler(async () => {
  if (random() < 0.05) return 503;
  return 200;
}).listen();
const worker = new Worker(makeFolder('crash'), {
  log: { level: 'warn' },
  routes: [githubRoute(handler, { retry: { backoff: '5ms', max_backoff: '20ms' } })],
});

const acked = new Set();
let unanswered = 0;
let next = 0;
let verified = 0;

async function sender(agent, stop) {
  while (!stop.now) {
    // One in five repeats an earlier event.
    const n = next > 0 && random() < 0.2 ? Math.floor(random() * next) : next++;
    const id = `e-${n}`;
    const body = JSON.stringify({ n });
    try {
      const { status } = await worker.post('/github', githubHeaders(id, body), body, agent);
      assert.ok([200, 202, 503].includes(status), `status ${status}`);
      if (status !== 503) acked.add(id);
    } catch (error) {
      if (error instanceof assert.AssertionError) throw error;
      unanswered++;
    }
  }
}

for (let round = 0; round < rounds; round++) {
  await worker.start();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const stop = { now: false };
  const senders = Array.from({ length: 16 }, () => sender(agent, stop));
  await new Promise((resolve) => setTimeout(resolve, random() * 60));
  await worker.kill();
  stop.now = true;
  await Promise.all(senders);
  agent.destroy();
  const { code, out, err } = await worker.command('verify-store');
  assert.equal(code, 0, `round ${round}: ${out}${err}`);
  verified++;
}

await worker.start();
const counts = await worker.settled('github');
assert.equal(counts.dead, 0);
assert.equal(counts.failed, 0);

const invocations = Map.groupBy
  ? Map.groupBy(handler.invocations, (i) => i.id)
  : handler.invocations.reduce((map, i) => map.set(i.id, [...(map.get(i.id) ?? []), i]), new Map());
let explained = 0;
const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
for (const id of acked) {
  const event = await worker.event('github', id);
  assert.equal(event.state, 'SUCCEEDED', id);
  const seen = invocations.get(id) ?? [];
  assert.ok(seen.length >= 1, `${id}: never handled`);
  assert.equal(new Set(seen.map((i) => i.key)).size, 1, `${id}: one key`);
  const rows = event.history.filter((row) => ['crashed', 'retry', 'uncertain'].includes(row.what)).length;
  assert.ok(seen.length <= 1 + rows, `${id}: ${seen.length} attempts, ${rows} explained: ${JSON.stringify(event.history)}`);
  assert.ok(event.attempts <= 1 + rows, `${id}: ${event.attempts} attempts counted, ${rows} explained`);
  explained += seen.length - 1;
}
for (const [id, seen] of invocations) {
  assert.ok(/^e-\d+$/.test(id) && seen.every((i) => i.body.toString() === JSON.stringify({ n: Number(id.slice(2)) })), id);
}
agent.destroy();
assert.ok(acked.size > rounds, `only ${acked.size} acknowledged: the load was too small to show anything`);
assert.equal(await worker.stop(), 0);
assert.equal((await worker.command('verify-store')).code, 0);
await handler.close();
console.log(`${rounds} kills: ${acked.size} acknowledged events, 0 lost; ${explained} further attempts, all explained; ` +
  `${unanswered} requests without an answer; ${verified} stores verified`);
