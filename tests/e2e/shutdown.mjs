// SPDX-License-Identifier: MIT
// SIGTERM: what is under way ends and is recorded, what comes is answered
// 503, and after the next start nothing is handled twice. A second signal
// ends the worker at once; what it leaves is found by the next start.

import assert from 'node:assert/strict';
import http from 'node:http';
import { once } from 'node:events';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, until } from './lib.mjs';

// Answers wait until the test lets them go.
const held = [];
let holds = true;
const handler = await new Handler(() => (holds ? new Promise((resolve) => held.push(resolve)) : 200)).listen();
const release = () => held.splice(0).forEach((resolve) => resolve(200));
const worker = await new Worker(makeFolder('shutdown'), {
  shutdown_timeout: '20s',
  routes: [githubRoute(handler, { retry: { backoff: '20ms', max_backoff: '50ms' }, handler: { http: {
    url: `http://127.0.0.1:${handler.port}/hook`, timeout: '30s', concurrency: 4 } } })],
}).start();
const send = async (id, agent) => {
  const body = JSON.stringify({ id });
  return worker.post('/github', githubHeaders(id, body), body, agent);
};
const count = (id) => handler.of(id).length;

// --- in order ---------------------------------------------------------------------------------

// 4 under way, 2 that wait for a place.
for (let i = 0; i < 6; i++) assert.equal((await send(`s-${i}`)).status, 202);
await until('4 attempts', () => held.length === 4);

// Connections that are open: one idle after an answer, one in the middle of
// a request.
const idle = new http.Agent({ keepAlive: true, maxSockets: 1 });
assert.equal((await send('s-0', idle)).status, 200);
const body = JSON.stringify({ id: 'slow' });
const slow = http.request({ host: '127.0.0.1', port: worker.port, path: '/github', method: 'POST',
  headers: { ...githubHeaders('slow', body), 'Content-Length': body.length } });
slow.write(body.slice(0, 3));
await until('the slow request to be open', () => slow.socket?.bytesWritten > 100);
// Behind it on the same listener: what came before was seen.
assert.equal((await send('s-1')).status, 200);

const { exited } = worker;
worker.child.kill('SIGTERM');
await until('the stop to be told', () => /stopping/.test(worker.log()));
await until('readiness to end', async () => (await worker.admin('/readyz').catch(() => ({ status: 0 }))).status !== 200);
const late = await send('late', idle).catch(() => null);
if (late !== null) {
  assert.equal(late.status, 503);
  assert.ok(Number(late.headers['retry-after']) >= 1);
  assert.equal(late.headers['idempotency-status'], 'refused');
}
const answered = once(slow, 'response').catch(() => null);
slow.end(body.slice(3));
const cut = await answered;
if (cut !== null) {
  assert.ok([503, 202].includes(cut[0].statusCode), `${cut[0].statusCode}`);
  cut[0].resume();
}
const slowTaken = cut !== null && cut[0].statusCode === 202;
assert.ok(worker.child, 'it waits for what is under way');
release();
assert.equal(await exited, 0);
assert.match(worker.log(), /msg=stopped/);
assert.equal((await worker.command('verify-store')).code, 0);
for (let i = 0; i < 4; i++) assert.equal(count(`s-${i}`), 1);
assert.equal(count('s-4') + count('s-5'), 0, 'none was started any more');

holds = false;
await worker.start();
await worker.settled('github');
for (let i = 0; i < 6; i++) {
  const event = await worker.event('github', `s-${i}`);
  assert.equal(event.state, 'SUCCEEDED');
  assert.equal(event.attempts, 1);
  assert.equal(count(`s-${i}`), 1, `s-${i} was handled once`);
}
if (!slowTaken) assert.equal((await worker.admin('/v1/events/github/slow')).status, 404);
if (late !== null) assert.equal((await worker.admin('/v1/events/github/late')).status, 404);
assert.equal(await worker.stop(), 0);

// --- a handler that takes too long: the deadline ends it ------------------------------------------

holds = true;
worker.config.shutdown_timeout = '500ms';
await worker.start();
assert.equal((await send('d-1')).status, 202);
await until('the attempt', () => held.length === 1);
const before = Date.now();
assert.equal(await worker.stop(), 0);
assert.ok(Date.now() - before >= 400, 'not before its time');
release();
holds = false;
await worker.start();
await worker.settled('github');
const cutShort = await worker.event('github', 'd-1');
assert.equal(cutShort.state, 'SUCCEEDED');
assert.equal(cutShort.attempts, 2);
assert.equal(new Set(handler.of('d-1').map((i) => i.key)).size, 1);
assert.ok(cutShort.history.some((row) => ['uncertain', 'crashed'].includes(row.what)), JSON.stringify(cutShort.history));
assert.equal(await worker.stop(), 0);

// --- a second signal -------------------------------------------------------------------------------

worker.config.shutdown_timeout = '10m';
for (const signals of [['SIGTERM', 'SIGTERM'], ['SIGINT', 'SIGTERM']]) {
  const id = `t-${signals[0]}`;
  holds = true;
  await worker.start();
  assert.equal((await send(id)).status, 202);
  await until('the attempt', () => held.length === 1);
  const stops = () => worker.log().match(/msg=stopping/g)?.length ?? 0;
  const told = stops();
  const ended = worker.exited;
  worker.child.kill(signals[0]);
  await until('the stop to be told', () => stops() > told);
  const at = Date.now();
  worker.child.kill(signals[1]);
  await ended;
  assert.ok(Date.now() - at < 5000, 'at once');
  release();
  holds = false;
  await worker.start();
  await worker.settled('github');
  assert.equal((await worker.event('github', id)).state, 'SUCCEEDED');
  assert.equal(count(id), 2, `${id}: once more, since nobody knows`);
  assert.equal(new Set(handler.of(id).map((i) => i.key)).size, 1);
  assert.equal(await worker.stop(), 0);
}
await worker.start();

// --- SIGHUP and SIGPIPE end nothing ------------------------------------------------------------------

worker.child.kill('SIGHUP');
worker.child.kill('SIGPIPE');
await until('SIGHUP to be told', () => /SIGHUP/.test(worker.log()));
assert.equal((await send('last')).status, 202);
assert.equal(await worker.stop(), 0);
assert.equal((await worker.command('verify-store')).code, 0);
idle.destroy();
await handler.close();
console.log('SIGTERM lets attempts end and takes nothing new; a second one ends at once; nothing was handled twice without a word');
