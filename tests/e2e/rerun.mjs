// SPDX-License-Identifier: MIT
// Successes run again on purpose: all since a time, once, under new keys; a
// provider's repeat stays a repeat, and the same order twice runs nothing
// more. What cannot be run again is skipped, counted and said.

import assert from 'node:assert/strict';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, parallel, until } from './lib.mjs';

const handler = await new Handler(({ id }) => (id.startsWith('bad') ? 404 : 200)).listen();
const folder = makeFolder('rerun');
const http = { url: `http://127.0.0.1:${handler.port}/hook`, concurrency: 16 };
const worker = await new Worker(folder, {
  routes: [
    githubRoute(handler),
    { name: 'gone', source: { http: { path: '/gone' } }, verify: 'none', id: ['json:/id'], keep: { envelope: '1s' }, handler: { http } },
    { name: 'other', source: { http: { path: '/other' } }, verify: 'none', id: ['json:/id'], handler: { http } },
  ],
}).start();

const send = async (target, id) => {
  const body = JSON.stringify({ id });
  return (await worker.post(target, githubHeaders(id, body), body)).status;
};
const rerun = async (...words) => {
  const { code, out, err } = await worker.command('rerun', ...words, '--json');
  assert.equal(code, 0, err);
  return JSON.parse(out);
};
const counts = (more) => ({ matched: 0, rerun: 0, skipped_run_before: 0, skipped_not_kept: 0, skipped_retired: 0, nothing_to_do: 0, refused: 0, no_room: 0, left: 0, cut_short: false, dry_run: false, more: false, ...more });

// --- 100 successes, one refusal -----------------------------------------------------------------------------

const ids = Array.from({ length: 100 }, (_, i) => `e-${i}`);
for (const id of ids) assert.equal(await send('/github', id), 202);
assert.equal(await send('/github', 'bad-1'), 202);
await worker.settled('github');
assert.equal(handler.invocations.length, 101);
const firstKeys = new Map(ids.map((id) => [id, handler.of(id)[0].key]));
assert.equal(new Set(firstKeys.values()).size, 100);

// --- what it would do, without doing it -----------------------------------------------------------------------

assert.deepEqual(await rerun('--since', '1h', '--dry-run'), counts({ matched: 100, rerun: 100, dry_run: true }));
const said = await worker.command('rerun', '--since', '1h', '--dry-run');
assert.equal(said.code, 0, said.err);
assert.match(said.out, /^100 matched, 100 would be rerun, /);
assert.equal(handler.invocations.length, 101, 'a dry run runs nothing');
assert.equal((await worker.event('github', 'e-0')).run, 1);

// --- each once, oldest first, under a new key ------------------------------------------------------------------

const done = await rerun('--since', '1h', '--route', 'github', '--rate', '500/s', '--wait', '--why', 'bad deploy');
assert.deepEqual(done, { ...counts({ matched: 100, rerun: 100 }), settled: { SUCCEEDED: 100 } });
assert.equal(handler.invocations.length, 201);
for (const id of ids) {
  const [first, second, ...more] = handler.of(id);
  assert.equal(more.length, 0, `${id} ran more than twice`);
  assert.notEqual(second.key, first.key, `${id} ran again under its old key`);
  assert.equal(second.attempt, 2);
  assert.ok(second.body.equals(first.body));
}
assert.equal(new Set(handler.invocations.map((i) => i.key)).size, 201);
assert.equal(handler.of('bad-1').length, 1, 'a dead letter is no success');
const shown = await worker.event('github', 'e-7');
assert.equal(shown.run, 2);
assert.equal(shown.attempts, 2);
assert.equal(shown.idempotency_key, handler.of('e-7')[1].key);
assert.deepEqual(shown.history.map(({ what, run }) => [what, run]), [
  ['received', null], ['succeeded', 1], ['rerun', 2], ['started', 2], ['succeeded', 2]]);
const ordered = shown.history.find((row) => row.what === 'rerun');
assert.ok(ordered.actor, 'who gave the order is told');
assert.match(ordered.why, /bad deploy/);
const text = await worker.command('show', 'github', 'e-7');
assert.match(text.out, /attempts\s+2, run 2/);

// --- a repeat stays a repeat ---------------------------------------------------------------------------------------

await parallel(8, ids.map((id) => async () => assert.equal(await send('/github', id), 200)));
assert.equal(handler.invocations.length, 201, 'a repeat is no attempt');

// --- the same order again -------------------------------------------------------------------------------------------

assert.deepEqual(await rerun('--since', '1h', '--route', 'github'), counts({ matched: 100, skipped_run_before: 100 }));
assert.deepEqual(await rerun('--since', '1h', '--route', 'github', '--wait'), { ...counts({ matched: 100, skipped_run_before: 100 }), settled: {} });
assert.equal(handler.invocations.length, 201);

// --- oldest first, limited; and once more on purpose ------------------------------------------------------------------

const late = ['o-0', 'o-1', 'o-2', 'o-3'];
for (const id of late) await send('/other', id);
await worker.settled('other');
assert.deepEqual(await rerun('--since', '1h', '--route', 'other', '--limit', '2', '--wait'), { ...counts({ matched: 4, rerun: 2, left: 2 }), settled: { SUCCEEDED: 4 } });
assert.deepEqual(late.map((id) => handler.of(id).length), [2, 2, 1, 1], 'the oldest go first');
assert.match((await worker.command('rerun', '--since', '1h', '--route', 'other', '--again', '--limit', '3', '--dry-run')).out, /^4 matched, 3 would be rerun, .*, 1 left\n$/);
assert.deepEqual(await rerun('--since', '1h', '--route', 'other', '--again', '--wait'), { ...counts({ matched: 4, rerun: 4 }), settled: { SUCCEEDED: 4 } });
assert.deepEqual(late.map((id) => handler.of(id).length), [3, 3, 2, 2]);
assert.equal((await worker.event('other', 'o-0')).run, 3);
const one = await worker.command('rerun', 'other', 'o-3', '--wait');
assert.equal(one.code, 0, one.err);
assert.equal(handler.of('o-3').length, 3);
assert.deepEqual(await rerun('--since', new Date(Date.now() + 3600000).toISOString()), counts({}));

// --- two orders at the same time run each once -----------------------------------------------------------------------

const many = Array.from({ length: 50 }, (_, i) => `m-${i}`);
for (const id of many) await send('/other', id);
await worker.settled('other');
const order = async (more) => JSON.parse((await worker.admin('/v1/rerun', 'POST', JSON.stringify({ route: 'other', since: '1h', ...more }))).body);
const slow = order({ rate: '20/s' });
await until('the slow order to begin', () => handler.of('m-0').length === 2);
const fast = await order();
await worker.settled('other');
assert.ok(fast.rerun > 0, 'it overtook the slow one');
assert.equal((await slow).rerun + fast.rerun, 50);
await worker.settled('other');
for (const id of many) assert.equal(handler.of(id).length, 2, `${id} ran ${handler.of(id).length} times`);

// --- what is not kept any more -------------------------------------------------------------------------------------------

await send('/gone', 'g-0');
await worker.settled('gone');
const settledAt = Date.parse((await worker.event('gone', 'g-0')).changed);
while ((await worker.event('gone', 'g-0')).request !== null) {
  assert.ok(Date.now() - settledAt < 30000, 'its envelope is still kept');
  await new Promise((resolve) => setTimeout(resolve, 50));
}
assert.deepEqual(await rerun('--since', '1h', '--route', 'gone', '--dry-run'), counts({ matched: 1, skipped_not_kept: 1, dry_run: true }));
assert.deepEqual(await rerun('--since', '1h', '--route', 'gone'), counts({ matched: 1, skipped_not_kept: 1 }));
assert.match((await worker.command('rerun', '--since', '1h', '--route', 'gone')).out, /1 skipped whose request is not kept/);
assert.equal((await worker.command('rerun', 'gone', 'g-0')).code, 65);
assert.equal(handler.of('g-0').length, 1);

// --- orders that are none ----------------------------------------------------------------------------------------------

for (const [code, ...words] of [
  [64], [64, 'github'], [64, '--since', 'noon'], [64, '--since', '1h', 'github', 'e-1'], [64, '--route', 'github'],
  [64, '--since', '1h', '--rate', 'fast'], [64, '--since', '1h', '--limit', '0'], [64, 'github', 'e-1', '--again'],
  [66, '--since', '1h', '--route', 'nowhere'], [66, 'github', 'nowhere'], [65, 'github', 'bad-1'],
]) {
  const { code: ended, err } = await worker.command('rerun', ...words);
  assert.equal(ended, code, `${words.join(' ')}: ${err}`);
}
for (const wrong of ['{}', '{"since":1}', '{"since":"1h","reason":"refused"}', '{"since":"1h","assume_not_applied":true}', '{"since":"1h","again":1}']) {
  assert.equal((await worker.admin('/v1/rerun', 'POST', wrong)).status, 400, wrong);
}
assert.equal((await worker.admin('/v1/rerun')).status, 405);
assert.equal(handler.of('e-1').length, 2);

// --- the history stays in order: a repeat is told before the rerun, and after the success -----------------------------

await send('/other', 'h-0');
await worker.settled('other');
assert.equal(await send('/other', 'h-0'), 200);
await until('the repeat to be written', async () => (await worker.event('other', 'h-0')).deliveries === 2);
await rerun('--since', '1h', '--route', 'other', '--wait');
const times = (await worker.event('other', 'h-0')).history;
assert.deepEqual(times.map(({ at }) => at), times.map(({ at }) => at).sort());

// --- a worker that stops in the middle tells how far it came ---------------------------------------------------------

const cut = ['r-0', 'r-1', 'r-2', 'r-3', 'r-4', 'r-5', 'r-6', 'r-7'];
for (const id of cut) await send('/other', id);
await worker.settled('other');
const long = worker.command('rerun', '--since', '1h', '--route', 'other', '--rate', '1/s');
await until('it to begin', () => handler.of('r-1').length === 2);
assert.equal(await worker.stop(), 0);
const told = await long;
assert.equal(told.code, 75, told.out + told.err);
assert.match(told.err, /stopped before .* give the order again/);
const [, ran, left] = told.out.match(/^\d+ matched, (\d+) rerun, .*, (\d+) left\n$/) ?? assert.fail(told.out);
assert.equal(Number(ran) + Number(left), cut.length);
await worker.start();
await worker.settled('other');
assert.equal((await rerun('--since', '1h', '--route', 'other', '--wait')).rerun, Number(left));
for (const id of cut) assert.equal(handler.of(id).length, 2, id);

// --- nothing is left to wait on a route that runs nothing --------------------------------------------------------------

assert.equal(await worker.stop(), 0);
worker.config.routes[2] = { name: 'other', retired: true };
await worker.start();
const skipped = await rerun('--since', '1h', '--route', 'other', '--again');
assert.ok(skipped.matched > 0);
assert.deepEqual(skipped, counts({ matched: skipped.matched, skipped_retired: skipped.matched }));
const unrun = await worker.command('rerun', 'other', 'o-3');
assert.equal(unrun.code, 65, unrun.out);
assert.match(unrun.out, /refused: the route is retired: .*; SUCCEEDED/);
assert.equal((await worker.counts('other')).pending, 0);

assert.equal(await worker.stop(), 0);
const verified = await worker.command('verify-store');
assert.equal(verified.code, 0, verified.out + verified.err);
await handler.close();
console.log(`${ids.length} successes ran again, once, under new keys; repeats stayed repeats and the same order twice ran nothing more`);
