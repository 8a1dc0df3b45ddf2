// SPDX-License-Identifier: MIT
// A dump is all that a store knows, as lines of JSON: loaded elsewhere it
// makes the same store, but that what was not settled is uncertain there. A
// dump that is not whole is refused, what is known is not overwritten, and
// ids that were handled elsewhere are repeats from then on.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, parallel, program, until } from './lib.mjs';

let answer = () => 200;
const handler = await new Handler((invocation) => answer(invocation)).listen();
const folder = makeFolder('dump');
const http = { url: `http://127.0.0.1:${handler.port}/hook`, concurrency: 16 };
const byId = { verify: 'none', id: ['json:/id'], handler: { http } };
const routes = [
  githubRoute(handler),
  { name: 'held', source: { http: { path: '/held' } }, on_uncertain: 'hold', ...byId },
  { name: 'ordered', source: { http: { path: '/ordered' } }, order_by: 'json:/k', after_dead: 'hold', ...byId },
  { name: 'tenants', source: { http: { path: '/tenants' } }, tenant: 'header:X-Account', ...byId },
  { name: 'still', source: { http: { path: '/still' } }, ...byId },
];
const makeWorker = (name, more = routes) => {
  fs.mkdirSync(path.join(folder, name), { recursive: true });
  return new Worker(path.join(folder, name), { routes: more });
};
// With its configuration, and without a store.
const makeBare = async (name, more) => {
  const bare = makeWorker(name, more);
  await bare.start();
  await bare.stop();
  fs.rmSync(path.join(folder, name, 'store'), { recursive: true });
  return bare;
};
const lines = (text) => text.trimEnd().split('\n').map((line) => JSON.parse(line));
const write = (name, all) => {
  const file = path.join(folder, name);
  fs.writeFileSync(file, all.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n') + '\n');
  return file;
};
const settled = ({ state }) => ['SUCCEEDED', 'FAILED', 'DEAD'].includes(state);

// --- a store with everything in it ------------------------------------------------------------------------------

const worker = await makeWorker('first').start();
const post = async (target, body, headers = {}) => {
  const { status } = await worker.post(target, { ...githubHeaders(headers.id ?? 'x', body), ...headers }, body);
  assert.ok([200, 202].includes(status), `${target}: ${status}`);
  return status;
};
const send = (target, id, more = {}, headers = {}) => post(target, JSON.stringify({ id, ...more }), { id, ...headers });

const binary = Buffer.from([0x7b, 0xff, 0x00, 0xfe, 0x0a]);
answer = ({ id }) => {
  if (id.startsWith('bad')) return { status: 404, headers: { 'Onced-Code': 'no-such' } };
  if (id.startsWith('odd')) return { status: 200, headers: { 'X-Odd': Buffer.from('gr\xfcn', 'latin1').toString('latin1') }, body: binary };
  return { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'héllo' };
};
for (let i = 0; i < 20; i++) await send('/github', `ok-${i}`, {}, { Authorization: 'Bearer geheim' });
for (const id of ['odd-0', 'bad-0']) await send('/github', id);
await post('/github?a=b&c', binary, { id: 'odd-1' });
await send('/github', 'ok-0');
await send('/github', 'ok-1', { other: 'content' });
await send('/tenants', 'same', {}, { 'X-Account': 'Ä' });
await send('/tenants', 'same', {}, { 'X-Account': 'B' });
for (const id of ['bad-o1', 'o2', 'o3']) await send('/ordered', id, { k: 'key' });
await worker.settled('github');
await worker.settled('tenants');
await until('the first of the key to die', async () => (await worker.counts('ordered')).dead === 1);
for (const id of ['ok-3', 'ok-4']) assert.equal((await worker.command('rerun', 'github', id, '--wait')).code, 0);
assert.equal((await worker.command('pause', 'still')).code, 0);
for (const id of ['s-0', 's-1']) await send('/still', id);
answer = () => new Promise(() => {});
for (const id of ['h-0', 'r-0']) await send(id === 'h-0' ? '/held' : '/github', id);
await until('both to run', () => handler.of('h-0').length + handler.of('r-0').length === 2);
const busy = await worker.command('dump');
assert.equal(busy.code, 75, 'not while the worker runs');
assert.match(busy.err, /stop the worker/);
assert.equal(busy.out, '');
await worker.kill();

// --- the dump --------------------------------------------------------------------------------------------------------

const file = path.join(folder, 'all.jsonl');
assert.equal((await worker.command('dump', '-o', file)).code, 0);
assert.equal(fs.statSync(file).mode & 0o777, 0o600);
const again = await worker.command('dump', '-o', file);
assert.equal(again.code, 64, 'an older dump is not overwritten');
const shown = await worker.command('dump');
assert.equal(shown.code, 0, shown.err);
const all = lines(fs.readFileSync(file, 'utf8'));
assert.deepEqual(lines(shown.out).slice(1), all.slice(1));
const [header, end] = [all[0], all.at(-1)];
const events = all.slice(1, -1);
assert.equal(header.onced_dump, 1);
assert.match(header.store, /^[0-9a-f]{32}$/);
assert.equal(header.incarnation, 1);
assert.deepEqual(header.paused, ['still']);
assert.deepEqual(end, { end: true, events: 32 });
assert.equal(events.length, 32);
const find = (list, id, tenant = '') => list.find((event) => event.id === id && event.tenant === tenant);
events.forEach((event, i) => assert.ok(i === 0 || event.origin > events[i - 1].origin, 'in order of arrival'));
const first = find(events, 'ok-0');
assert.equal(first.state, 'SUCCEEDED');
assert.equal(first.namespace, 'github');
assert.equal(first.deliveries, 2);
assert.equal(first.idempotency_key, handler.of('ok-0')[0].key);
assert.ok(first.request.headers.some(([name, value]) => name === 'Authorization' && value === 'Bearer geheim'));
assert.equal(first.request.body, '{"id":"ok-0"}');
assert.equal(first.request.query, null);
assert.equal(first.result.body, 'héllo');
assert.equal(find(events, 'ok-1').drift, 1);
assert.equal(find(events, 'ok-3').run, 2);
assert.deepEqual(find(events, 'ok-3').history.map(({ what }) => what), ['succeeded', 'rerun', 'started', 'succeeded']);
const odd = find(events, 'odd-1');
assert.deepEqual(Buffer.from(odd.request.body_base64, 'base64'), binary);
assert.equal(odd.request.query, 'a=b&c');
assert.deepEqual(Buffer.from(find(events, 'odd-0').result.body_base64, 'base64'), binary);
const dead = find(events, 'bad-0');
assert.deepEqual([dead.state, dead.reason, dead.code], ['DEAD', 'refused', 'no-such']);
assert.deepEqual(find(events, 'bad-o1').flags, ['ordered']);
assert.deepEqual(find(events, 'o2').flags, ['order-wait', 'ordered']);
assert.equal(find(events, 'o2').order_key, find(events, 'bad-o1').order_key);
assert.equal(find(events, 'h-0').state, 'RUNNING');
assert.equal(find(events, 'same', 'Ä').state, 'SUCCEEDED');
const part = await worker.command('dump', '--route', 'tenants');
assert.deepEqual(lines(part.out).slice(1, -1), events.filter(({ route }) => route === 'tenants'));
assert.equal((await worker.command('dump', '--route', 'nowhere')).code, 66);

// --- loaded, and dumped again -------------------------------------------------------------------------------------------

const second = makeWorker('second');
await second.start();
assert.equal((await second.command('load', file)).code, 75, 'not while the worker runs');
await second.stop();
fs.rmSync(path.join(folder, 'second/store'), { recursive: true });
const load = async (to, name, ...words) => {
  const { code, out, err } = await to.command('load', name, '--json', ...words);
  return { code, err, ...(out === '' ? {} : JSON.parse(out)) };
};
const dry = await second.command('load', file, '--dry-run');
assert.equal(dry.code, 0, dry.err);
assert.equal(fs.existsSync(path.join(folder, 'second/store')), false);
const unsettled = events.filter((event) => !settled(event));
assert.deepEqual(unsettled.map(({ id }) => id).sort(), ['h-0', 'o2', 'o3', 'r-0', 's-0', 's-1']);
assert.deepEqual(await load(second, file), { code: 0, err: '', loaded: 32, uncertain: 6, already_there: 0, conflicts: 0, strays: 0 });
const secondLines = lines((await second.command('dump')).out);
assert.notEqual(secondLines[0].store, header.store);
assert.deepEqual(secondLines[0].paused, ['still']);
const copies = secondLines.slice(1, -1);
const bare = (event) => ({ ...event, origin: 0 });
assert.deepEqual(copies.filter((event) => settled(find(events, event.id, event.tenant))).map(bare), events.filter(settled).map(bare));
assert.deepEqual(copies.map(({ id }) => id), events.map(({ id }) => id));
for (const event of unsettled) {
  const copy = find(copies, event.id);
  const row = copy.history[event.history.length];
  assert.equal(copy.state, event.route === 'held' ? 'DEAD' : 'UNCERTAIN', event.id);
  assert.equal(row.what, 'restored');
  assert.ok(row.actor, 'who loaded it is told');
  assert.ok(copy.flags.includes('restored'));
  assert.deepEqual(copy.history.slice(0, event.history.length), event.history);
  for (const name of ['route', 'namespace', 'run', 'attempts', 'idempotency_key', 'request', 'first_seen', 'fingerprint', 'order_key', 'deliveries']) {
    assert.deepEqual(copy[name], event[name], `${event.id}: ${name}`);
  }
}
assert.equal(find(copies, 'h-0').reason, 'uncertain');
assert.deepEqual(find(copies, 'o2').flags, ['restored', 'order-wait', 'ordered']);
const check = async (of) => {
  const verified = await of.command('verify-store');
  assert.equal(verified.code, 0, verified.out + verified.err);
};
await check(second);

// --- a second time: it is there; and another one under an id: it stays ------------------------------------------------------

assert.deepEqual(await load(second, file), { code: 0, err: '', loaded: 0, uncertain: 0, already_there: 32, conflicts: 0, strays: 0 });
const other = write('other.jsonl', [header, { ...find(events, 'ok-5'), attempts: 9 }, { ...find(events, 'ok-6'), id: 'new-1' }, { end: true, events: 2 }]);
const conflict = await load(second, other);
assert.deepEqual({ ...conflict, err: '' }, { code: 65, err: '', loaded: 1, uncertain: 0, already_there: 0, conflicts: 1, strays: 0 });
assert.match(conflict.err, /line 2: github ok-5 is in the store/);
const kept = lines((await second.command('dump')).out);
assert.equal(find(kept, 'ok-5').attempts, 1);
assert.equal(find(kept, 'new-1').state, 'SUCCEEDED');

// --- the copy at work ----------------------------------------------------------------------------------------------------------

answer = () => 200;
handler.invocations.length = 0;
await second.start();
await parallel(8, events.filter((event) => event.route === 'github').map(({ id }) => async () => {
  assert.equal((await second.post('/github', githubHeaders(id, '{"id":1}'), '{"id":1}')).status, 200, `${id} is a repeat`);
}));
await second.settled('github');
assert.deepEqual(handler.invocations.map(({ id }) => id), ['r-0'], 'only what was not settled, and not held, and not paused');
assert.equal(handler.of('r-0')[0].key, find(events, 'r-0').idempotency_key, 'under the same key');
assert.equal((await second.command('resume', 'still')).code, 0);
await second.settled('still');
assert.equal(handler.of('s-0').length, 1);
assert.equal((await second.command('replay', 'ordered', 'bad-o1')).code, 0);
await second.settled('ordered');
assert.deepEqual(handler.invocations.slice(-3).map(({ id }) => id), ['bad-o1', 'o2', 'o3'], 'in the order of their key');
assert.equal((await second.event('held', 'h-0')).state, 'DEAD');
assert.equal(handler.of('h-0').length, 0);
await second.stop();
await check(second);

// --- events that came from partitions: with their positions, by the names of the streams -------------------------------------------------------

assert.ok(events.every(({ position }) => position === null));
const at = (offset, partition = 3) => ({ stream: 'default/orders/onced', partition, offset });
const message = { topic: 'orders', partition: 3, offset: 7, timestamp_ms: 1, key: 'k', received: header.at, headers: [['a', 'b'], ['none', null]], body: null };
const done = { ...find(events, 'ok-5'), request: message, position: at(7), flags: [] };
const open = { ...done, state: 'RUNNING', attempts: 1, due: done.changed, result: null, history: [] };
const messages = [
  done,
  { ...done, id: 'there', request: null, flags: ['left'], position: { ...at(0, 0), stream: 'eu/refunds/onced' } },
  { ...done, id: 'last', position: at(Number.MAX_SAFE_INTEGER, 2 ** 31 - 1) },
  { ...open, id: 'kept', flags: ['pins'] },
  { ...open, id: 'left', flags: ['pins', 'left'], request: null },
];
const partitions = await makeBare('partitions');
const fromPartitions = write('partitions.jsonl', [header, ...messages, { end: true, events: 5 }]);
assert.deepEqual(await load(partitions, fromPartitions), { code: 0, err: '', loaded: 5, uncertain: 2, already_there: 0, conflicts: 0, strays: 0 });
assert.equal((await load(partitions, fromPartitions)).already_there, 5);
await check(partitions);
const carried = lines((await partitions.command('dump')).out).slice(1, -1);
assert.deepEqual(carried.map(({ position }) => position), messages.map(({ position }) => position));
assert.deepEqual(carried.slice(0, 3).map(bare), messages.slice(0, 3).map((event, i) => bare({ ...event, idempotency_key: carried[i].idempotency_key })));
assert.deepEqual(carried.slice(3).map(({ state, flags, due }) => ({ state, flags, due })), [
  { state: 'UNCERTAIN', flags: ['restored', 'parked', 'pins'], due: null },
  { state: 'UNCERTAIN', flags: ['restored', 'parked', 'pins', 'left'], due: null },
]);

// --- what is no dump ---------------------------------------------------------------------------------------------------------------

const bad = (name, all, message, code = 65) => ({ name, file: write(`${name}.jsonl`, all), message, code });
const [one, two] = [find(events, 'ok-5'), find(events, 'ok-6')];
const change = (more) => [header, { ...one, ...more }, { end: true, events: 1 }];
const without = (name) => { const { [name]: gone, ...rest } = one; return [header, rest, { end: true, events: 1 }]; };
const whole = fs.readFileSync(file, 'utf8');
const third = makeWorker('third');
await third.start();
await third.stop();
const emptyStore = (await third.command('dump')).out;
for (const { name, file: from, message, code } of [
  bad('truncated', all.slice(0, -1), /truncated/),
  bad('half-line', [...all.slice(0, 5), JSON.stringify(all[5]).slice(0, 100)], /line 6: .*JSON/),
  bad('count', [header, one, { end: true, events: 2 }], /line 3: .*not whole/),
  bad('behind', [header, one, { end: true, events: 1 }, two], /line 4: .*follows/),
  bad('no-header', [one, { end: true, events: 1 }], /line 1: .*header/),
  bad('newer', [{ ...header, onced_dump: 2 }, { end: true, events: 0 }], /version 2/),
  bad('empty', [''], /truncated/),
  bad('garbage', [header, '\u0000\u0001{{'], /line 2: .*JSON/),
  bad('list', [header, '[]'], /line 2: .*object/),
  bad('twice', [header, JSON.stringify(one).replace('{', '{"route":"x",')], /line 2: .*JSON/),
  bad('state', change({ state: 'ALIVE' }), /"state"/),
  bad('reason', change({ reason: 'refused' }), /reason/),
  bad('run', change({ run: 0 }), /run is 0/),
  bad('tries', change({ tries: 7 }), /tries/),
  bad('number', change({ attempts: -1 }), /"attempts"/),
  bad('big', change({ attempts: 2 ** 40 }), /"attempts"/),
  bad('flag', change({ flags: ['lost'] }), /"flags"/),
  bad('wrong-flag', change({ flags: ['probing'] }), /flag/),
  bad('time', change({ changed: 'noon' }), /"changed"/),
  bad('old', change({ first_seen: '1969-01-01T00:00:00Z' }), /"first_seen"/),
  bad('due', change({ due: one.changed }), /due/),
  bad('id', change({ id: '' }), /"id"/),
  bad('long', change({ id: 'x'.repeat(256) }), /"id"/),
  bad('tenant', change({ tenant: 'x'.repeat(256) }), /"tenant"/),
  bad('key', change({ order_key: 'zz' }), /"order_key"/),
  bad('position', change({ position: 'orders/3/7' }), /"stream"/),
  bad('no-stream', change({ position: { partition: 3, offset: 7 } }), /"stream"/),
  bad('empty-stream', change({ position: { stream: '', partition: 3, offset: 7 } }), /"stream"/),
  bad('long-stream', change({ position: { stream: 'x'.repeat(1024), partition: 3, offset: 7 } }), /position/),
  bad('partition', change({ position: { stream: 'a', partition: 2 ** 31, offset: 7 } }), /"partition"/),
  bad('no-partition', change({ position: { stream: 'a', partition: -1, offset: 7 } }), /"partition"/),
  bad('offset', change({ position: { stream: 'a', partition: 3, offset: -1 } }), /"offset"/),
  bad('left', change({ state: 'RUNNING', due: one.changed, flags: ['left'], request: null }), /nobody keeps it/),
  bad('digest', change({ fingerprint: { version: 1, mode: 'raw', digest: '00' } }), /"digest"/),
  bad('move', change({ history: [{ at: one.changed, what: 'eaten', attempt: 1, run: 1, actor: null, why: null }] }), /"what"/),
  bad('headers', change({ request: { ...one.request, headers: [['a']] } }), /"headers"/),
  bad('base64', change({ request: { ...one.request, body_base64: '?', body: undefined } }), /"body_base64"/),
  bad('erased', change({ flags: ['erased'] }), /erased/),
  bad('nothing-to-run', [header, { ...find(events, 'r-0'), request: null }, { end: true, events: 1 }], /line 2: .*not settled.*request is not there/),
  bad('nothing-to-replay', [header, { ...dead, request: null }, { end: true, events: 1 }], /line 2: .*dead letter.*request is not there/),
  bad('last-attempt', [header, { ...find(events, 'r-0'), attempts: 2 ** 32 - 1 }, { end: true, events: 1 }], /"attempts" is over/),
  bad('last-run', change({ run: 2 ** 32 - 1 }), /"run" is over/),
  bad('name', change({ route: 'a b\n' }), /"route" is no name/),
  bad('namespace', change({ namespace: 'x'.repeat(65) }), /"namespace" is no name/),
  bad('paused', [{ ...header, paused: ['a/b'] }, { end: true, events: 0 }], /"paused"/),
  bad('nul', change({ id: 'a\u0000b' }), /"id" has a control character/),
  bad('line-end', change({ tenant: 'a\nb' }), /"tenant" has a control character/),
  bad('route', [{ ...header, paused: ['still'] }, ...events.slice(0, 3), { ...find(events, 'r-0'), route: 'unknown' }, { end: true, events: 4 }],
    /line 5: .*route "unknown".*not\s+configured.*retired/s, 78),
  ...['store', 'at', 'route', 'paused', 'forgotten_until'].map((name) => {
    const { [name]: gone, ...rest } = header;
    return bad(`header-no-${name}`, [rest, { end: true, events: 0 }], new RegExp(`line 1: "${name}" is missing`));
  }),
  ...Object.keys(one).filter((name) => !['origin', 'idempotency_key', 'position'].includes(name)).map((name) => bad(`no-${name}`, without(name), new RegExp(`"${name}" is missing`))),
]) {
  for (const words of [['--dry-run'], []]) {
    const { code: ended, err, out } = await third.command('load', from, ...words);
    assert.equal(ended, code, `${name}: ${err}`);
    assert.match(err, message, name);
    assert.doesNotMatch(err, /loaded before that/, name);
    assert.equal(out, '');
  }
}
const emptyAgain = lines((await third.command('dump')).out);
assert.deepEqual(emptyAgain.slice(1), lines(emptyStore).slice(1), 'nothing of a bad file is stored');
assert.equal((await third.command('load', path.join(folder, 'nowhere'))).code, 66);
assert.equal((await third.command('load')).code, 64);
assert.equal((await third.command('load', file, '--route', 'github')).code, 64);

// --- by a pipe it cannot be read before: what came is there, and the store waits for the rest ---------------------------------------

const pipe = (to, input, ...words) => spawnSync(program, ['load', '-c', to.file, '-', ...words], { input, encoding: 'utf8' });
const cut = pipe(third, all.slice(0, 8).map((line) => JSON.stringify(line)).join('\n'));
assert.equal(cut.status, 65, cut.stderr);
assert.match(cut.stderr, /truncated/);
const refused = await third.command('run');
assert.equal(refused.code, 65, 'half a memory is not run on');
assert.match(refused.err, /load into it did not end/);
assert.match(cut.stderr, /7 were loaded before that; the store waits/);
const foreign = write('foreign.jsonl', [{ ...header, at: '2026-01-31T10:00:00Z' }, { end: true, events: 0 }]);
for (const words of [[foreign], ['--seen', '/dev/null']]) {
  const other = await third.command('load', ...words);
  assert.equal(other.code, 65, 'no other load ends it');
  assert.ok(other.err.includes(`the dump of store ${header.store}, written at ${header.at}`), other.err);
}
assert.equal((await third.command('run')).code, 65);
const halfBackup = path.join(folder, 'half-backup');
const unbacked = await third.command('backup', halfBackup);
assert.equal(unbacked.code, 65, unbacked.err);
assert.match(unbacked.err, /load into it did not end/);
assert.equal(fs.existsSync(halfBackup), false);
assert.equal((await third.command('verify-store')).code, 0);
const rest = pipe(third, whole, '--json');
assert.equal(rest.status, 0, rest.stderr);
const restCounts = JSON.parse(rest.stdout);
assert.equal(restCounts.loaded + restCounts.already_there, 32);
assert.equal(restCounts.conflicts, 0);
await third.start();
assert.equal((await third.settled('github')).succeeded, 23, 'r-0, too');
await third.stop();
await check(third);

// --- a store that the load makes is marked from the first, or is not there ---------------------------------------------------------------

const young = await makeBare('young');
const none = pipe(young, `${JSON.stringify(one)}\n`);
assert.equal(none.status, 65, none.stderr);
assert.equal(fs.existsSync(path.join(folder, 'young/store/data.mdb')), false);
const early = pipe(young, all.slice(0, 1).map((line) => JSON.stringify(line)).join('\n'));
assert.equal(early.status, 65, early.stderr);
assert.match(early.stderr, /0 were loaded before that; the store waits/);
assert.equal((await young.command('run')).code, 65, 'an empty memory is not run on');
fs.rmSync(path.join(folder, 'young/store'), { recursive: true });
const killed = spawnSync(program, ['load', '-c', young.file, file], { env: { ...process.env, ONCED_KILL_AT: 'store-after-rename:1' } });
if (killed.signal === 'SIGKILL') assert.equal((await young.command('run')).code, 65, 'nor after a kill right behind its birth');
else assert.equal(killed.status, 0, 'built without marks');
assert.equal((await load(young, file)).code, 0);

// --- a key's order goes on, across the two stores ----------------------------------------------------------------------------------------

handler.invocations.length = 0;
await young.start();
const behind = await young.post('/ordered', {}, '{"id":"o4","k":"key"}');
assert.equal(behind.status, 202);
assert.deepEqual((await young.event('ordered', 'o4')).flags ?? [], (await young.event('ordered', 'o3')).flags ?? []);
assert.equal((await young.event('ordered', 'o4')).attempts, 0, 'behind the dead one that holds its key');
assert.equal((await young.command('replay', 'ordered', 'bad-o1')).code, 0);
await young.settled('ordered');
assert.deepEqual(handler.invocations.filter(({ id }) => /^(bad-)?o\d$/.test(id)).map(({ id }) => id), ['bad-o1', 'o2', 'o3', 'o4']);
await young.stop();
await check(young);

// --- a route whose namespace is another one here: told ------------------------------------------------------------------------------------

const shared = await makeBare('shared', [{ ...routes[0], namespace: 'shared' }, ...routes.slice(1)]);
for (const words of [['--dry-run'], []]) {
  const stray = await shared.command('load', file, ...words);
  assert.equal(stray.code, 65, stray.err);
  assert.match(stray.err, /line 2: github ok-0 is of namespace "github", and here the route has "shared"/);
  assert.match(stray.err, /of 24 no delivery will be known as a repeat/);
}
assert.equal((await shared.command('load', file, '--json')).out.includes('"strays":24'), true);

const other_tenants = await makeBare('other-tenants', routes.map((route) => ({ ...route, tenant: route.name === 'held' ? 'header:X-Account' : undefined })));
const strays = await load(other_tenants, file);
assert.deepEqual([strays.code, strays.strays], [65, 3]);
assert.match(strays.err, /tenants same has a tenant, and here the route has none/);
assert.match(strays.err, /held h-0 has no tenant, and here the route has them/);
const retired = await makeBare('retired', routes.map(({ name, namespace }) => ({ name, namespace: `of-${name}`, retired: true, on_uncertain: 'hold' })));
assert.equal((await load(retired, file)).code, 0, 'it has no deliveries');

// --- contents that are not kept any more are not in a dump ----------------------------------------------------------------------------------

const short = await makeBare('short', [{ ...routes[0], keep: { envelope: '1ms', result: '1ms' } }, ...routes.slice(1)]);
assert.equal((await load(short, file)).code, 0);
const lean = lines((await short.command('dump')).out).slice(1, -1);
assert.deepEqual([find(lean, 'ok-0').request, find(lean, 'ok-0').result], [null, null]);
assert.deepEqual(find(lean, 'bad-0').request, dead.request, 'a dead letter is kept');
assert.deepEqual(find(lean, 'same', 'Ä').request, find(events, 'same', 'Ä').request, 'so is what another route keeps');
const unreadable = await makeBare('unreadable', [{ ...routes[0], keep: { envelope: '1d' } }, ...routes.slice(1)]);
fs.writeFileSync(unreadable.file, fs.readFileSync(unreadable.file, 'utf8').replace('"1d"', '"long"'));
fs.renameSync(path.join(folder, 'short/store'), path.join(folder, 'unreadable/store'));
const long = await unreadable.command('dump');
assert.equal(long.code, 78, long.err);
assert.match(long.err, /routes\/0\/keep/);

// --- no room ----------------------------------------------------------------------------------------------------------------------------------

const full = spawnSync('sh', ['-c', `"${program}" dump -c "${young.file}" > /dev/full`], { encoding: 'utf8' });
assert.equal(full.status, 74);
assert.match(full.stderr, /No space left on device/);
const narrow = await makeBare('narrow');
const narrowText = JSON.parse(fs.readFileSync(narrow.file, 'utf8'));
fs.writeFileSync(narrow.file, JSON.stringify({ ...narrowText, store: { ...narrowText.store, max_size: '16MiB' } }));
const large = (id) => ({ ...one, id, request: { ...one.request, body: 'x'.repeat(1 << 20) } });
const wide = write('wide.jsonl', [header, ...Array.from({ length: 40 }, (_, i) => large(`wide-${i}`)), { end: true, events: 40 }]);
const tight = await narrow.command('load', wide);
assert.equal(tight.code, 75, tight.err);
assert.match(tight.err, /store\.max_size \(16MiB\)/);
assert.match(tight.err, /the store waits for a load of the same/);

// --- what is settled needs no route ---------------------------------------------------------------------------------------------------

const fourth = makeWorker('fourth', [routes[0]]);
await fourth.start();
await fourth.stop();
const gone = write('gone.jsonl', [header, find(events, 'same', 'Ä'), { end: true, events: 1 }]);
assert.equal((await load(fourth, gone)).loaded, 1);

// --- a backup can be dumped, and not loaded into ----------------------------------------------------------------------------------------

const backup = path.join(folder, 'backup');
const backupConfig = path.join(folder, 'backup.json');
fs.writeFileSync(backupConfig, JSON.stringify({ store: { path: backup }, routes }));
assert.equal((await fourth.command('backup', backup)).code, 0);
const ofBackup = spawnSync(program, ['dump', '-c', backupConfig], { encoding: 'utf8' });
assert.equal(ofBackup.status, 0, ofBackup.stderr);
assert.deepEqual(lines(ofBackup.stdout).slice(1), lines((await fourth.command('dump')).out).slice(1));
const intoBackup = spawnSync(program, ['load', '-c', backupConfig, gone], { encoding: 'utf8' });
assert.equal(intoBackup.status, 65);
assert.match(intoBackup.stderr, /onced restore/);

// --- ids that were handled elsewhere -----------------------------------------------------------------------------------------------------

const fifth = makeWorker('fifth');
await fifth.start();
await fifth.stop();
const ids = Array.from({ length: 1000 }, (_, i) => `seen-${i}`);
const list = path.join(folder, 'ids');
fs.writeFileSync(list, `${ids.slice(0, 500).join('\n')}\n${ids.slice(500).map((id) => JSON.stringify({ route: 'github', id, at: '2026-01-31T10:00:00Z' })).join('\n')}\n`);
assert.deepEqual(await load(fifth, list, '--seen', '--route', 'github'), { code: 0, err: '', loaded: 1000, uncertain: 0, already_there: 0, conflicts: 0, strays: 0 });
assert.deepEqual(await load(fifth, list, '--seen', '--route', 'github'), { code: 0, err: '', loaded: 0, uncertain: 0, already_there: 1000, conflicts: 0, strays: 0 });
// Killed right behind the birth of its store; a shorter list that begins alike must not end it.
const cutShort = await makeBare('cut-short');
const cutLoad = spawnSync(program, ['load', '-c', cutShort.file, '--seen', '--route', 'github', list], { env: { ...process.env, ONCED_KILL_AT: 'store-after-rename:1' } });
if (cutLoad.signal === 'SIGKILL') {
  const shorter = pipe(cutShort, `${ids[0]}\n${ids[1]}\n`, '--seen', '--route', 'github');
  assert.equal(shorter.status, 65, shorter.stderr);
  assert.match(shorter.stderr, /the list of 1000 ids/);
  assert.equal((await cutShort.command('run')).code, 65);
} else assert.equal(cutLoad.status, 0, 'built without marks');
const byPipe = pipe(cutShort, fs.readFileSync(list), '--seen', '--route', 'github', '--json');
assert.equal(byPipe.status, 0, byPipe.stderr);
const pipeCounts = JSON.parse(byPipe.stdout);
assert.equal(pipeCounts.loaded + pipeCounts.already_there, 1000, 'the same list by a pipe');

const mixed = write('mixed', [{ route: 'tenants', id: 'a', tenant: 'Ä' }, { route: 'tenants', id: 'a', tenant: 'B' }]);
assert.equal((await load(fifth, mixed, '--seen')).loaded, 2);
// An editor's mark, and spaces, are no part of an id.
const bom = path.join(folder, 'bom');
fs.writeFileSync(bom, '\ufeffseen-0\r\n  seen-1\t\r\n');
assert.deepEqual(await load(fifth, bom, '--seen', '--route', 'github'), { code: 0, err: '', loaded: 0, uncertain: 0, already_there: 2, conflicts: 0, strays: 0 });
fs.writeFileSync(bom, `\ufeff${JSON.stringify(header)}\n{"end":true,"events":0}\n`);
assert.equal((await load(fifth, bom)).code, 0);
for (const [name, text, message] of [
  ['no-tenant', '{"route":"tenants","id":"a"}', /tenant/], ['a-tenant', '{"route":"github","id":"a","tenant":"x"}', /no tenants/],
  ['no-route', '{"id":"a"}', /names no route/], ['plain', 'just-an-id', /names no route/], ['unknown', '{"route":"x","id":"a"}', /"x"/],
  ['no-id', '{"route":"github"}', /"id"/], ['empty-id', '{"route":"github","id":""}', /id is empty/], ['number', '{"route":"github","id":1}', /"id"/],
  ['long', JSON.stringify({ route: 'github', id: 'x'.repeat(256) }), /255/], ['at', '{"route":"github","id":"a","at":"noon"}', /"at"/],
]) {
  const said = await load(fifth, write(`seen-${name}`, [text]), '--seen');
  assert.equal(said.code, 65, `${name}: ${said.err}`);
  assert.match(said.err, message);
  assert.match(said.err, /line 1: /);
}
handler.invocations.length = 0;
await fifth.start();
await parallel(16, ids.map((id) => async () => {
  assert.equal((await fifth.post('/github', githubHeaders(id, '{}'), '{}')).status, 200, `${id} is a repeat`);
}));
assert.equal((await fifth.post('/tenants', { 'X-Account': 'Ä' }, '{"id":"a"}')).status, 200);
assert.equal((await fifth.post('/tenants', { 'X-Account': 'C' }, '{"id":"a"}')).status, 202);
await fifth.settled('tenants');
assert.equal(handler.invocations.length, 1, 'what was seen makes no attempt');
const seen = await fifth.event('github', 'seen-999');
assert.deepEqual([seen.state, seen.run, seen.attempts, seen.deliveries, seen.request, seen.result], ['SUCCEEDED', 1, 0, 1, null, null]);
assert.equal(seen.first_seen, '2026-01-31T10:00:00.000Z');
const told = seen.history.find((row) => row.what === 'seen');
assert.equal(told.why, 'seen elsewhere');
assert.ok(told.actor);
const nothing = await fifth.command('rerun', 'github', 'seen-0');
assert.equal(nothing.code, 65);
assert.match(nothing.out, /nothing to run/);
await fifth.stop();
await check(fifth);
const seenDump = path.join(folder, 'seen.jsonl');
assert.equal((await fifth.command('dump', '-o', seenDump)).code, 0);
const sixth = makeWorker('sixth');
await sixth.start();
await sixth.stop();
assert.equal((await load(sixth, seenDump)).loaded, 1003);
assert.deepEqual(lines((await sixth.command('dump')).out).slice(1, -1).map(bare), lines(fs.readFileSync(seenDump, 'utf8')).slice(1, -1).map(bare));

await handler.close();
console.log(`${events.length} events dumped and loaded are the same but for the doubt; what is no dump is refused, and ${ids.length} ids seen elsewhere are repeats`);
