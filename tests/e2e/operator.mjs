// SPDX-License-Identifier: MIT
// What an operator sees and orders, with the command and over the admin API,
// with the worker running and stopped: answers, rights, exit statuses, the
// history that names who did it, metrics that add up, and the log.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { userInfo } from 'node:os';
import { Handler, Worker, freePort, githubHeaders, githubRoute, githubSecret, makeFolder, parallel, request } from './lib.mjs';
import { command, inState, metric, run } from './support/fault.mjs';

let answer = () => 200;
const handler = await new Handler((invocation) => answer(invocation)).listen();
const folder = makeFolder('operator');
const file = (name) => path.join(folder, name);
const tokens = { reader: 'tok_reader_0123456789', ops: 'tok_ops_0123456789abc' };
fs.writeFileSync(file('ops.token'), `${tokens.ops}\n`, { mode: 0o600 });
const appSecret = 'app_secret_0123456789';
const quick = { backoff: '10ms', max_backoff: '20ms', max_attempts: 2 };
const http = { url: `http://127.0.0.1:${handler.port}/hook`, headers: { Authorization: { value: `Bearer ${appSecret}` } } };
const adminPort = await freePort();
const worker = await new Worker(folder, {
  log: { format: 'json' },
  admin: { address: `127.0.0.1:${adminPort}`, tokens: [
    { name: 'reader', role: 'read', value: tokens.reader }, { name: 'ops', role: 'operate', file: 'ops.token' }] },
  routes: [
    githubRoute(handler, { retry: quick, handler: { http } }),
    githubRoute(handler, { name: 'held', source: { http: { path: '/held' } }, on_uncertain: 'hold', retry: quick, handler: { http } }),
    { name: 'tenants', source: { http: { path: '/tenants' } }, verify: 'none', id: ['json:/id'], tenant: 'header:X-Account', handler: { http } },
    { name: 'never', source: { http: { path: '/never' } }, verify: 'none', id: ['json:/id'], handler: { noop: {} } },
  ],
}).start();
const order = (...words) => command(worker, ...words);
const json = async (...words) => {
  const { code, out, err } = await order(...words, '--json');
  assert.equal(code, 0, `${words.join(' ')}: ${err}`);
  return JSON.parse(out);
};
const send = async (target, id, headers = {}) => {
  const body = JSON.stringify({ id });
  const { status, body: said } = await worker.post(target, { ...githubHeaders(id, body), ...headers }, body);
  assert.ok([200, 202].includes(status), `${target} ${id}: ${status} ${said}`);
  return status;
};
const user = userInfo().username;

// --- 250 events: half refused, the rest fine --------------------------------------------------------

answer = ({ id }) => (Number(id.split('-')[1]) % 2 ? { status: 404, headers: { 'Onced-Code': 'no-account' } } : { status: 200, headers: { 'Content-Type': 'text/plain' }, body: 'héllo' });
const ids = Array.from({ length: 250 }, (_, i) => `e-${i}`);
await parallel(16, ids.map((id) => () => send('/github', id)));
for (let i = 0; i < 10; i++) await send('/github', 'e-0');
await worker.settled('github');

const seen = [];
let cursor = [];
do {
  const page = await json('events', '--route', 'github', ...cursor);
  assert.ok(page.events.length <= 100);
  seen.push(...page.events);
  cursor = page.cursor === null ? [] : ['--cursor', page.cursor];
} while (cursor.length > 0);
assert.deepEqual(seen.map((event) => event.id).sort(), [...ids].sort(), 'each is listed once');
assert.equal((await json('events', '--limit', '7')).events.length, 7);
const dead = await json('events', '--state', 'DEAD', '--reason', 'refused', '--since', '1h', '--limit', '1000');
assert.equal(dead.events.length, 125);
assert.equal(dead.cursor, null);
for (const event of dead.events) {
  assert.equal(event.state, 'DEAD');
  assert.equal(event.code, 'no-account');
  assert.equal(event.due, null);
  for (const name of ['first_seen', 'last_seen']) assert.match(event[name], /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
}
assert.equal((await json('events', '--state', 'DEAD', '--reason', 'exhausted')).events.length, 0);
assert.equal((await json('events', '--since', new Date(Date.now() + 3600000).toISOString())).events.length, 0);
assert.equal((await json('events', '--route', 'never')).events.length, 0);
const grouped = await json('events', '--group-by', 'state,reason,code');
assert.deepEqual(grouped.groups.find((group) => group.values[0] === 'DEAD'), { values: ['DEAD', 'refused', 'no-account'], events: 125 });

// --- one event, for people and for programs -----------------------------------------------------------

const shown = await json('show', 'github', 'e-0');
assert.deepEqual(shown, await worker.event('github', 'e-0'));
assert.equal(shown.route, 'github');
assert.equal(shown.state, 'SUCCEEDED');
assert.equal(shown.deliveries, 11);
assert.equal(shown.run, 1);
assert.equal(shown.result.status, 200);
assert.equal(shown.result.body, 'héllo');
assert.equal(shown.request.method, 'POST');
assert.equal(shown.request.path, '/github');
assert.equal(shown.request.body, '{"id":"e-0"}');
const stored = new Map(shown.request.headers.map(([name, value]) => [name.toLowerCase(), value]));
assert.equal(stored.get('x-hub-signature-256'), '***');
assert.equal(stored.get('x-github-delivery'), 'e-0');
assert.equal(shown.history[0].what, 'received');
assert.ok(shown.history.some((row) => row.what === 'succeeded'));
const text = await order('show', 'github', 'e-0');
assert.equal(text.code, 0);
for (const part of ['e-0', 'SUCCEEDED', 'héllo', shown.idempotency_key, 'received', 'succeeded']) assert.ok(text.out.includes(part), `${part}: ${text.out}`);
const status = await order('status');
assert.equal(status.code, 0);
assert.match(status.out, /github\b.*\b125\b.*\b125\b/);

const odd = 'a/b c?d&e=%2F#é';
await send('/tenants', odd, { 'X-Account': 'Ä & Co' });
await worker.settled('tenants');
assert.equal((await json('show', 'tenants', odd, '--tenant', 'Ä & Co')).id, odd);
assert.equal((await order('show', 'tenants', odd)).code === 0, false, 'without its tenant it is none');

// --- exit statuses -----------------------------------------------------------------------------------------

const success = await order('discard', 'github', 'e-0');
assert.equal(success.code, 0);
assert.match(success.out, /succeeded/, 'a success stays one');
const ends = [
  [66, 'show', 'github', 'nowhere'], [66, 'show', 'nowhere', 'e-0'], [66, 'events', '--route', 'nowhere'],
  [66, 'replay', 'github', 'nowhere'], [66, 'pause', 'nowhere'], [66, 'discard', 'nowhere', 'e-1'],
  [64, 'events', '--state', 'ALIVE'], [64, 'events', '--limit', '0'], [64, 'events', '--limit', '1001'], [64, 'events', '--limit', 'x'],
  [64, 'events', '--since', 'soon'], [64, 'events', '--cursor', 'x'], [64, 'events', '--reason', 'x'], [64, 'events', '--group-by', 'x'],
  [64, 'show', 'github'], [64, 'show', 'github', 'e-0', 'e-1'], [64, 'replay'], [64, 'replay', 'github', 'e-1', '--dead'],
  [64, 'resolve', 'github', 'e-1'], [64, 'resolve', 'github', 'e-1', '--applied', '--not-applied'],
  [64, 'resolve', 'github', 'e-1', '--not-applied', '--status', '200'], [64, 'resolve', 'github', 'e-1', '--applied', '--status', '99'],
  [64, 'replay', '--dead', '--rate', 'fast'], [64, 'show', '--colour', 'x', 'y'], [64, 'events', '--limit'],
  [64, 'show', 'github', 'x'.repeat(256)],
];
for (const [code, ...words] of ends) {
  const ran = await order(...words);
  assert.equal(ran.code, code, `${words.join(' ')}: ${ran.out}${ran.err}`);
  assert.match(ran.err, /^onced: [^\n]+\n$/, `${words.join(' ')}: one line`);
  assert.equal(ran.out, '', words.join(' '));
}

// --- orders, and who gave them ---------------------------------------------------------------------------------

answer = () => 200;
const told = (event, what) => event.history.filter((row) => row.what === what);
assert.equal((await order('replay', 'github', 'e-1', '--dry-run')).code, 0);
assert.equal((await worker.event('github', 'e-1')).state, 'DEAD', 'a dry run changes nothing');
assert.equal((await order('replay', 'github', 'e-1', '--wait', '--why', 'account made')).code, 0);
const replayed = await worker.event('github', 'e-1');
assert.equal(replayed.state, 'SUCCEEDED');
assert.equal(replayed.run, 1);
assert.equal(told(replayed, 'replayed').length, 1);
assert.equal(told(replayed, 'replayed')[0].actor, user);
assert.match(told(replayed, 'replayed')[0].why, /account made/);
assert.equal(new Set(handler.of('e-1').map((i) => i.key)).size, 1);

assert.equal((await order('discard', 'github', 'e-3')).code, 0);
const discarded = await worker.event('github', 'e-3');
assert.deepEqual([discarded.state, discarded.reason], ['FAILED', 'discarded']);
assert.equal(told(discarded, 'discarded')[0]?.actor, user, JSON.stringify(discarded.history));

fs.writeFileSync(file('result'), 'as told');
assert.equal((await order('resolve', 'github', 'e-5', '--applied', '--status', '201', '--body', file('result'))).code, 0);
const resolved = await worker.event('github', 'e-5');
assert.deepEqual([resolved.state, resolved.result.status, resolved.result.body], ['SUCCEEDED', 201, 'as told']);
assert.equal(handler.of('e-5').length, 1);
assert.equal((await order('resolve', 'github', 'e-7', '--not-applied')).code, 0);
await inState(worker, 'github', 'e-7', 'SUCCEEDED');
assert.equal(handler.of('e-7').length, 2);

const [before] = handler.of('e-0');
assert.equal((await order('rerun', 'github', 'e-0')).code, 0);
await worker.settled('github');
const rerun = await worker.event('github', 'e-0');
assert.deepEqual([rerun.state, rerun.run, rerun.attempts], ['SUCCEEDED', 2, 2]);
assert.equal(handler.of('e-0').length, 2);
assert.notEqual(handler.of('e-0')[1].key, before.key, 'a new key');

answer = () => 500;
await send('/held', 'h-1');
await inState(worker, 'held', 'h-1', 'DEAD');
const doubt = await order('replay', 'held', 'h-1');
assert.equal(doubt.code, 75, doubt.out + doubt.err);
const all = await order('replay', '--dead', '--route', 'held', '--json');
assert.equal(all.code, 75);
assert.equal(JSON.parse(all.out).skipped_in_doubt, 1);
assert.equal(handler.of('h-1').length, 1);

assert.equal((await order('pause', 'github')).code, 0);
assert.equal((await order('pause', 'github')).code, 0, 'paused already');
assert.equal((await worker.counts('github')).paused, true);
answer = () => 200;
const rest = await json('replay', '--dead', '--route', 'github', '--reason', 'refused', '--since', '1h');
assert.deepEqual([rest.matched, rest.replayed], [121, 121]);
assert.equal((await worker.counts('github')).pending, 121);
const { events: [pending] } = await json('events', '--route', 'github', '--state', 'PENDING', '--limit', '1');
const vain = await order('replay', 'github', pending.id, '--wait');
assert.equal(vain.code, 75, 'nobody waits for a paused route');
assert.match(vain.err, /"github" is paused/);
assert.equal((await order('resume', 'github')).code, 0);
assert.equal((await worker.settled('github')).dead, 0);

// --- over TCP: tokens and roles --------------------------------------------------------------------------------

const tcp = (target, { method = 'GET', token, body = '', port = adminPort } = {}) => request({ host: '127.0.0.1', port, path: target, method,
  headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } }, body);
for (const target of ['/healthz', '/readyz', '/metrics']) {
  assert.equal((await tcp(target)).status, 200, target);
  assert.equal((await tcp(target, { port: worker.port })).status, 404, 'the ingress serves none of it');
}
const reads = ['/v1/status', '/v1/events?limit=1', '/v1/events/github/e-0'];
const acts = ['/v1/events/github/e-0/replay', '/v1/events/github/e-0/rerun', '/v1/events/github/e-3/discard', '/v1/routes/held/pause', '/v1/routes/held/resume', '/v1/replay'];
for (const [list, method] of [[reads, 'GET'], [acts, 'POST']]) {
  for (const target of list) {
    for (const token of [undefined, '', 'wrong', `${tokens.ops}x`, tokens.ops.slice(0, -1), appSecret]) {
      const { status: code, headers } = await tcp(target, { method, token });
      assert.equal(code, 401, `${target} ${token}`);
      assert.match(headers['www-authenticate'] ?? '', /^Bearer/, `${target}: WWW-Authenticate`);
    }
    assert.equal((await tcp(target, { method, token: tokens.reader })).status, method === 'GET' ? 200 : 403, `${target} as reader`);
  }
}
assert.equal((await worker.counts('held')).paused, false, 'no order was taken');
for (const target of reads) assert.equal((await tcp(target, { token: tokens.ops })).status, 200, target);
assert.equal((await tcp('/v1/routes/held/pause', { method: 'POST', token: tokens.ops })).status, 200);
assert.equal((await worker.counts('held')).paused, true);
assert.equal((await tcp('/v1/routes/held/resume', { method: 'POST', token: tokens.ops })).status, 200);
const applied = await tcp('/v1/events/held/h-1/resolve', { method: 'POST', token: tokens.ops, body: '{"applied":true,"why":"seen at the bank"}' });
assert.equal(applied.status, 200, applied.body.toString());
const held = await worker.event('held', 'h-1');
assert.equal(held.state, 'SUCCEEDED');
const byOps = held.history.filter((row) => row.actor === 'ops');
assert.equal(byOps.length, 1, JSON.stringify(held.history));
assert.match(byOps[0].why, /seen at the bank/);

const wrong = [
  [404, 'GET', '/v1/nowhere'], [404, 'GET', '/v1/events/github/nowhere'], [404, 'GET', '/v1/events/nowhere/e-0'],
  [405, 'POST', '/v1/status'], [405, 'GET', '/v1/replay'], [405, 'DELETE', '/v1/events/github/e-0'], [400, 'GET', '/v1/events?limit=0'], [400, 'GET', '/v1/events?colour=red'],
  [400, 'GET', '/v1/events?limit=1&limit=2'], [400, 'POST', '/v1/replay', 'no JSON'], [400, 'POST', '/v1/replay', '{"colour":1}'],
  [400, 'POST', '/v1/replay', '[]'], [400, 'POST', '/v1/events/github/e-0/resolve', '{}'], [400, 'POST', '/v1/events/github/e-0/resolve', '{"applied":1}'],
  [413, 'POST', '/v1/replay', 'x'.repeat(4 << 20)],
];
for (const [code, method, target, body] of wrong) {
  const got = await tcp(target, { method, token: tokens.ops, body }).catch((error) => error);
  if (got instanceof Error && code === 413) continue; // cut off while it was still sending
  assert.equal(got.status, code, `${method} ${target}: ${got.body}`);
  assert.equal(got.headers['content-type'], 'application/problem+json', target);
  assert.equal(JSON.parse(got.body).status, code);
  if (code === 405) assert.ok(got.headers.allow, target);
}

// --- metrics ---------------------------------------------------------------------------------------------------

const metrics = (await worker.admin('/metrics')).body.toString();
const typed = new Map();
for (const line of metrics.trimEnd().split('\n')) {
  const comment = /^# (HELP|TYPE) (\w+) (.+)$/.exec(line);
  if (comment) {
    if (comment[1] === 'TYPE') typed.set(comment[2], comment[3]);
    continue;
  }
  const sample = /^(\w+?)(_bucket|_sum|_count)?(\{(?:\w+="(?:[^"\\\n]|\\[\\n"])*",?)+\})? (-?[\d.e+-]+|\+Inf|NaN)$/.exec(line);
  assert.ok(sample, `not a sample: ${line}`);
  assert.ok(typed.has(sample[1]) || typed.has(sample[1] + (sample[2] ?? '')), `no TYPE before: ${line}`);
  for (const secret of ['e-0', 'Co', githubSecret]) assert.ok(!line.includes(`"${secret}"`), line);
}
assert.equal(await metric(worker, 'onced_deliveries_total{route="github",outcome="accepted"}'), 250);
assert.equal(await metric(worker, 'onced_deliveries_total{route="github",outcome="duplicate"}'), 10);
const succeeded = (await worker.counts('github')).succeeded;
assert.equal(succeeded, 249);
assert.equal(await metric(worker, 'onced_events{route="github",state="SUCCEEDED"}'), succeeded);
assert.equal(await metric(worker, 'onced_events{route="github",state="DEAD"}'), 0);
assert.equal(await metric(worker, 'onced_attempts_total{route="github",result="success"}'),
  handler.invocations.filter((i) => i.headers['onced-route'] === 'github').length - 125);
assert.equal(await metric(worker, 'onced_attempts_total{route="github",result="refused"}'), 125);
assert.equal(await metric(worker, 'onced_handler_seconds_count{route="github"}'), handler.invocations.filter((i) => i.headers['onced-route'] === 'github').length);
assert.equal(await metric(worker, 'onced_settled_total{route="github",state="DEAD",reason="refused"}'), 125);
const state = await worker.json('/v1/status');
assert.equal(state.state, 'ready');
assert.equal(state.store.remembered, 252);
assert.equal(await metric(worker, 'onced_store_bytes'), state.store.bytes);

// --- the worker stopped ------------------------------------------------------------------------------------------

const running = { list: await json('events', '--limit', '1000'), show: await json('show', 'github', 'e-0') };
assert.equal((await order('verify-store')).code, 75, 'the store is in use');
assert.equal(await worker.stop(), 0);
assert.equal((await order('status')).code, 69);
assert.equal((await order('replay', 'github', 'e-1')).code, 69);
assert.equal((await order('pause', 'github')).code, 69);
assert.deepEqual(await json('events', '--limit', '1000'), running.list, 'the same list');
assert.deepEqual(await json('show', 'github', 'e-0'), running.show, 'the same story');
assert.equal((await json('show', 'tenants', odd, '--tenant', 'Ä & Co')).tenant, 'Ä & Co');
assert.equal((await order('show', 'github', 'nowhere')).code, 66);
assert.equal((await order('events', '--route', 'nowhere')).code, 66);
assert.equal((await order('events', '--limit', '0')).code, 64);
const verified = await json('verify-store');
assert.equal(verified.bad, 0);
assert.ok(verified.records >= 252);

// One byte in the middle of what is stored is found.
const data = path.join(folder, 'store/data.mdb');
const good = fs.readFileSync(data);
const at = good.indexOf('{"id":"e-200"}');
assert.ok(at > 0);
const bad = Buffer.from(good);
bad[at + 7] ^= 1;
fs.writeFileSync(data, bad);
const damaged = await order('verify-store', '--json');
assert.equal(damaged.code, 65, damaged.out + damaged.err);
fs.writeFileSync(data, good);
assert.equal((await order('verify-store')).code, 0);

// --- what was printed and logged ---------------------------------------------------------------------------------------

const log = worker.log();
const lines = log.trimEnd().split('\n').map((line) => JSON.parse(line));
for (const line of lines) {
  assert.match(line.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  assert.ok(['info', 'warn', 'error'].includes(line.level), line.level);
  assert.ok(line.msg.length > 0 && line.part.length > 0);
}
const settled = lines.filter((line) => line.msg === 'event settled' && line.id === 'e-2');
assert.equal(settled.length, 1, 'one line for an event that is settled');
assert.equal(settled[0].state, 'SUCCEEDED');
assert.equal(lines.filter((line) => line.msg === 'event settled' && line.route === 'github').length, 250 + 121 + 2 + 3, 'one line each time one settles');
assert.ok(lines.some((line) => line.msg === "operator's order" && line.actor === 'ops'));
for (const secret of [githubSecret, appSecret, ...Object.values(tokens)]) assert.ok(!log.includes(secret), 'no secret in the log');
const effective = await run(['check', '-c', worker.file, '--effective']);
assert.equal(effective.code, 0);
for (const secret of [githubSecret, appSecret, ...Object.values(tokens)]) assert.ok(!(effective.out + effective.err).includes(secret), 'no secret is printed');
await handler.close();
console.log(`lists, stories, orders, rights, metrics and ${lines.length} log lines are as an operator expects; stopped, the worker tells the same`);
