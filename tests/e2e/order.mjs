// SPDX-License-Identifier: MIT
// Events of one ordering key are handled one after another, whatever fails
// in between. Beside that: a known id with other content, two routes on one
// path, and pauses that outlive the worker.

import assert from 'node:assert/strict';
import { Handler, Worker, githubHeaders, githubRoute, githubSecret, makeFolder, parallel, until } from './lib.mjs';
import { command, inState, metric } from './support/fault.mjs';

let answer = () => 200;
const open = new Map();
let overlaps = 0;
const handler = await new Handler(async (invocation) => {
  const key = `${invocation.headers['onced-route']} ${JSON.parse(invocation.body).key}`;
  open.set(key, (open.get(key) ?? 0) + 1);
  if (open.get(key) > 1) overlaps++;
  await new Promise((resolve) => setImmediate(resolve));
  const said = await answer(invocation);
  open.set(key, open.get(key) - 1);
  return said;
}).listen();

const route = (name, more) => githubRoute(handler, { name, source: { http: { path: `/${name}` } },
  retry: { backoff: '10ms', max_backoff: '20ms', max_attempts: 5 }, ...more });
const worker = await new Worker(makeFolder('order'), {
  routes: [
    route('keys', { order_by: 'json:/key' }),
    route('on', { order_by: 'json:/key' }),
    route('hold', { order_by: 'json:/key', after_dead: 'hold' }),
    route('ack', { drift: 'ack' }),
    route('reject', { drift: 'reject' }),
    route('left', { source: { http: { path: '/both' } } }),
    route('right', { source: { http: { path: '/both' } }, order_by: 'json:/key' }),
    route('paused'),
  ],
}).start();
const post = (target, id, key, more = {}) => {
  const body = JSON.stringify({ key, ...more });
  return worker.post(target, githubHeaders(id, body), body);
};
const send = async (name, id, key) => {
  const { status, body } = await post(`/${name}`, id, key);
  assert.equal(status, 202, `${name} ${id}: ${body}`);
};
const ids = (name, key) => handler.invocations
  .filter((i) => i.headers['onced-route'] === name && JSON.parse(i.body).key === key).map((i) => i.id);

// --- 20 keys, 20 events each, one in five attempts fails; a crash in the middle -------------------

let n = 0;
answer = () => (n++ % 5 === 3 ? [503, 429, null][n % 3] : 200);
const keys = Array.from({ length: 20 }, (_, i) => `key-${i}`);
const list = (key) => Array.from({ length: 20 }, (_, i) => `${key}.${i}`);
await parallel(20, keys.map((key) => async () => {
  for (const id of list(key).slice(0, 12)) await send('keys', id, key);
}));
await worker.kill();
await until('the handler to be idle', () => [...open.values()].every((count) => count === 0));
await worker.start();
await parallel(20, keys.map((key) => async () => {
  for (const id of list(key).slice(12)) await send('keys', id, key);
}));
const counts = await worker.settled('keys');
assert.equal(counts.succeeded + counts.dead, 400);
assert.equal(overlaps, 0, 'no two of one key at one time');
for (const key of keys) {
  // Attempts of one event may follow each other; no later event comes before.
  const order = ids('keys', key).filter((id, i, all) => id !== all[i - 1]);
  assert.deepEqual(order, list(key), `${key}: ${order}`);
}

// --- the first of a key waits, is dead, is replayed ----------------------------------------------------

answer = ({ id, attempt }) => (id === 'first' ? (attempt < 3 ? 429 : 404) : 200);
for (const name of ['on', 'hold']) {
  for (const id of ['first', 'second', 'third']) await send(name, id, 'one');
  await send(name, 'beside', 'two');
  await inState(worker, name, 'first', 'DEAD');
  await inState(worker, name, 'beside', 'SUCCEEDED');
}
await worker.settled('on');
assert.deepEqual(ids('on', 'one'), ['first', 'first', 'first', 'second', 'third'], 'continue: the next go on');
assert.equal((await worker.event('hold', 'second')).state, 'PENDING');
assert.equal((await worker.event('hold', 'second')).due, null, 'it waits for no time');
await worker.stop();
await worker.start();
await send('hold', 'fourth', 'one');
assert.deepEqual(ids('hold', 'one'), ['first', 'first', 'first'], 'hold: they wait, over a restart, too');
answer = () => 200;
assert.equal((await command(worker, 'replay', 'hold', 'first', '--wait')).code, 0);
assert.equal((await worker.settled('hold')).succeeded, 5);
assert.deepEqual(ids('hold', 'one').slice(3), ['first', 'second', 'third', 'fourth']);

// Discarded, it holds nobody.
answer = ({ id }) => (id === 'bad' ? 404 : 200);
for (const id of ['bad', 'good']) await send('hold', id, 'three');
await inState(worker, 'hold', 'bad', 'DEAD');
assert.equal((await worker.event('hold', 'good')).state, 'PENDING');
assert.equal((await command(worker, 'discard', 'hold', 'bad')).code, 0);
await inState(worker, 'hold', 'good', 'SUCCEEDED');
answer = () => 200;

// --- a known id with other content -------------------------------------------------------------------

for (const name of ['ack', 'reject']) {
  await send(name, 'd-1', 'first content');
  await inState(worker, name, 'd-1', 'SUCCEEDED');
  assert.equal((await post(`/${name}`, 'd-1', 'first content')).status, 200, 'the same again');
  assert.equal((await worker.event(name, 'd-1')).drift, 0);
  const other = await post(`/${name}`, 'd-1', 'other content');
  if (name === 'ack') {
    assert.equal(other.status, 200);
  } else {
    assert.equal(other.status, 422, other.body.toString());
    assert.equal(other.headers['idempotency-status'], 'conflict');
    assert.equal(other.headers['content-type'], 'application/problem+json');
  }
  const drifted = await worker.event(name, 'd-1');
  assert.equal(drifted.drift, 1, name);
  assert.match(drifted.request.body, /first content/, 'the first content stays');
  assert.equal(handler.of('d-1').filter((i) => i.headers['onced-route'] === name).length, 1);
}

// --- two routes on one path ----------------------------------------------------------------------------

assert.equal((await post('/both', 'b-1', 'x')).status, 202);
assert.equal((await post('/both', 'b-1', 'x')).status, 200);
for (const name of ['left', 'right']) await inState(worker, name, 'b-1', 'SUCCEEDED');
assert.deepEqual(handler.of('b-1').map((i) => i.headers['onced-route']).sort(), ['left', 'right']);
assert.equal(new Set(handler.of('b-1').map((i) => i.key)).size, 2, 'two events, two keys');
for (const name of ['left', 'right']) {
  assert.equal(await metric(worker, `onced_deliveries_total{route="${name}",outcome="accepted"}`), 1, name);
  assert.equal(await metric(worker, `onced_deliveries_total{route="${name}",outcome="duplicate"}`), 1, name);
}
// New to one of them: that one runs, and the answer says so.
assert.equal(await worker.stop(), 0);
const [right] = worker.config.routes.splice(6, 1);
worker.config.routes.splice(6, 0, { name: 'right', retired: true });
await worker.start();
assert.equal((await post('/both', 'b-2', 'x')).status, 202);
assert.equal(await worker.stop(), 0);
worker.config.routes[6] = right;
await worker.start();
assert.equal((await post('/both', 'b-2', 'x')).status, 202, 'new to one of the two');
assert.equal((await post('/both', 'b-2', 'x')).status, 200);
for (const name of ['left', 'right']) await inState(worker, name, 'b-2', 'SUCCEEDED');
assert.deepEqual(handler.of('b-2').map((i) => i.headers['onced-route']), ['left', 'right']);

// --- a pause outlives the worker ------------------------------------------------------------------------

assert.equal((await command(worker, 'pause', 'paused')).code, 0);
for (let i = 0; i < 5; i++) await send('paused', `p-${i}`, 'x');
assert.equal(await metric(worker, 'onced_route_paused{route="paused"}'), 1);
await worker.kill();
await worker.start();
assert.equal((await worker.counts('paused')).paused, true);
assert.equal(await metric(worker, 'onced_route_paused{route="paused"}'), 1);
await send('paused', 'p-5', 'x');
await send('ack', 'beside', 'x');
await inState(worker, 'ack', 'beside', 'SUCCEEDED');
assert.equal((await worker.counts('paused')).pending, 6);
assert.equal((await command(worker, 'resume', 'paused')).code, 0);
assert.equal((await worker.settled('paused')).succeeded, 6);
assert.equal(handler.invocations.filter((i) => i.headers['onced-route'] === 'paused').length, 6);

assert.ok(!worker.log().includes(githubSecret));
assert.equal(await worker.stop(), 0);
assert.equal((await command(worker, 'verify-store')).code, 0);
await handler.close();
console.log('keys keep their order over failures and a crash; drift, shared paths and pauses are as promised');
