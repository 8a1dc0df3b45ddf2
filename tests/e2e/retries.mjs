// SPDX-License-Identifier: MIT
// Handlers that fail: retries with backoff, dead letters that are replayed
// once after the cure, doubt that is held for a person, redirects that are
// no success.

import assert from 'node:assert/strict';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, parallel } from './lib.mjs';

let mode = {};
const handler = await new Handler(({ id, attempt, headers }) => {
  const answer = mode[headers['onced-route']];
  return answer ? answer(id, attempt) : 200;
}).listen();

const quick = { backoff: '20ms', max_backoff: '50ms', max_attempts: 3 };
const route = (name, more) => githubRoute(handler, {
  name, source: { http: { path: `/${name}` } }, retry: quick, ...more,
});
const worker = await new Worker(makeFolder('retries'), {
  routes: [route('flaky'), route('spent'), route('held', { on_uncertain: 'hold' }), route('login')],
}).start();

const send = async (name, id) => {
  const body = JSON.stringify({ id });
  return (await worker.post(`/${name}`, githubHeaders(id, body), body)).status;
};
const ids = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}-${i}`);
const sendAll = (name, list) => parallel(16, list.map((id) => async () =>
  assert.equal(await send(name, id), 202)));

// --- fails twice, then works -------------------------------------------------------

mode.flaky = (id, attempt) => (attempt < 3 ? 503 : { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'done' });
assert.equal(await send('flaky', 'f-1'), 202);
await worker.settled('flaky');
const flaky = handler.of('f-1');
assert.deepEqual(flaky.map((i) => i.attempt), [1, 2, 3]);
assert.equal(new Set(flaky.map((i) => i.key)).size, 1);
const event = await worker.event('flaky', 'f-1');
assert.equal(event.state, 'SUCCEEDED');
assert.equal(event.result.status, 200);
assert.equal(event.result.body, 'done');
assert.equal(await send('flaky', 'f-1'), 200);
assert.equal(handler.of('f-1').length, 3, 'a repeat is not handled again');
const again = await worker.command('replay', 'flaky', 'f-1');
assert.equal(again.code, 0);
assert.match(again.out + again.err, /succeeded|nothing/i);
assert.equal(handler.of('f-1').length, 3, 'replaying a success changes nothing');

// --- 50 answered 404 and 50 answered 500 until spent -----------------------------------

for (const name of ['spent', 'held']) {
  const refused = ids(`${name}-404`, 50);
  const failed = ids(`${name}-500`, 50);
  mode[name] = (id) => (id.includes('404') ? 404 : 500);
  await sendAll(name, [...refused, ...failed]);
  const before = await worker.settled(name);
  assert.equal(before.dead, 100, `${name}: none is lost`);
  const keys = new Map(handler.invocations.filter((i) => i.id.startsWith(name)).map((i) => [i.id, i.key]));
  assert.equal(handler.of(refused[0]).length, 1, 'a refusal is not repeated');
  assert.equal(handler.of(failed[0]).length, name === 'held' ? 1 : 3);

  mode[name] = () => 200;
  const seen = handler.invocations.length;
  const dry = await worker.command('replay', '--dead', '--route', name, '--dry-run', '--json');
  assert.equal(handler.invocations.length, seen, 'a dry run runs nothing');
  assert.equal(JSON.parse(dry.out).matched, 100);
  const replay = await worker.command('replay', '--dead', '--route', name, '--json', '--wait');
  const said = JSON.parse(replay.out);
  const after = await worker.settled(name);
  const expected = name === 'held' ? 50 : 100;
  assert.equal(replay.code, name === 'held' ? 75 : 0, replay.err);
  assert.equal(said.replayed, expected);
  assert.equal(said.skipped_in_doubt, 100 - expected);
  assert.equal(after.succeeded, expected);
  assert.equal(after.dead, 100 - expected);
  const replayed = handler.invocations.slice(seen);
  assert.equal(replayed.length, expected, 'each is handled once');
  assert.equal(new Set(replayed.map((i) => i.id)).size, expected);
  for (const { id, key } of replayed) assert.equal(key, keys.get(id), 'under its old key');
}

const one = await worker.command('replay', 'held', 'held-500-0', '--assume-not-applied');
assert.equal(one.code, 0, one.err);
await worker.settled('held');
assert.equal(handler.of('held-500-0').length, 2);
const applied = await worker.command('resolve', 'held', 'held-500-1', '--applied');
assert.equal(applied.code, 0, applied.err);
assert.equal((await worker.event('held', 'held-500-1')).state, 'SUCCEEDED');
assert.equal(handler.of('held-500-1').length, 1);

// --- a redirect to a login page is no success ---------------------------------------------

mode.login = () => ({ status: 302, headers: { Location: '/login' }, body: 'please log in' });
await sendAll('login', ids('login', 5));
const counts = await worker.settled('login');
assert.equal(counts.succeeded, 0);
assert.equal(counts.dead, 5);
assert.ok(handler.invocations.every((i) => i.url === '/hook'), 'no redirect was followed');

assert.equal(await worker.stop(), 0);
await handler.close();
console.log('retries, dead letters, replay and doubt are as promised');
