// SPDX-License-Identifier: MIT
// kill -9 at random moments under load, then restart, many times. No event
// that was acknowledged is lost, no attempt is made that a logged crash or a
// recorded retry does not explain, and the store verifies every time.
//
//     node crash.mjs [ROUNDS] [SEED]

import assert from 'node:assert/strict';
import http from 'node:http';
import { Ledger } from './ledger.mjs';
import { Handler, Worker, githubRoute, makeFolder } from './lib.mjs';

const rounds = Number(process.argv[2] ?? 200);
let seed = Number(process.argv[3] ?? Date.now() % 1e9);
console.log(`rounds ${rounds}, seed ${seed}`);
const random = () => ((seed = (seed * 48271) % 2147483647) / 2147483647);

const handler = await new Handler().listen();
const worker = new Worker(makeFolder('crash'), {
  log: { level: 'warn' },
  routes: [githubRoute(handler, { retry: { backoff: '5ms', max_backoff: '20ms' } })],
});
const ledger = new Ledger(worker);
handler.answer = ledger.handling(() => (random() < 0.05 ? 503 : 200));

let unanswered = 0;
let next = 0;
let verified = 0;

async function sender(agent, stop) {
  while (!stop.now) {
    // One in five repeats an earlier event.
    const n = next > 0 && random() < 0.2 ? Math.floor(random() * next) : next++;
    const answer = await ledger.post('github', `e-${n}`, JSON.stringify({ n }), agent);
    if (answer === null) unanswered++;
    else assert.ok([200, 202, 503].includes(answer.status), `status ${answer.status}`);
  }
}

for (let round = 0; round < rounds; round++) {
  await ledger.start();
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  const stop = { now: false };
  const senders = Array.from({ length: 16 }, () => sender(agent, stop));
  await new Promise((resolve) => setTimeout(resolve, random() * 60));
  await ledger.kill();
  stop.now = true;
  await Promise.all(senders);
  agent.destroy();
  const { code, out, err } = await worker.command('verify-store');
  assert.equal(code, 0, `round ${round}: ${out}${err}`);
  verified++;
}

await ledger.start();
ledger.note('heal', { within_ms: 60000 });
const counts = await worker.settled('github');
assert.equal(counts.dead, 0);
assert.equal(counts.failed, 0);
const said = await ledger.check();
assert.ok(ledger.acked.size > rounds, `only ${ledger.acked.size} acknowledged: the load was too small to show anything`);
assert.equal((await worker.command('verify-store')).code, 0);
await handler.close();
console.log(`${rounds} kills: 0 events lost, every further attempt explained; ${unanswered} requests without an answer; ` +
  `${verified} stores verified\n${said}`);
