// SPDX-License-Identifier: MIT
// Backup and restore, as an operator does them: a backup taken while 20 events
// are not settled and restored after they were, one taken under load, and what
// happens where something is in the way, the disk is full, or the worker is
// killed in the middle.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { userInfo } from 'node:os';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, parallel, program, until } from './lib.mjs';
import { command, metric, run } from './support/fault.mjs';

const folder = makeFolder('backup');
const file = (...names) => path.join(folder, ...names);
const user = userInfo().username;
let answer = () => 503;
const handler = await new Handler((invocation) => answer(invocation)).listen();
const url = `http://127.0.0.1:${handler.port}/hook`;
const retry = { backoff: '1h', max_backoff: '1h' };
const routes = [
  githubRoute(handler, { name: 'held', source: { http: { path: '/held' } }, on_uncertain: 'hold', retry, handler: { http: { url, timeout: '60s', concurrency: 16 } } }),
  githubRoute(handler, { name: 'again', source: { http: { path: '/again' } }, on_uncertain: 'retry', retry, handler: { http: { url, timeout: '60s', concurrency: 16 } } }),
];

const send = async (worker, route, id, agent) => {
  const body = JSON.stringify({ id });
  const { status } = await worker.post(`/${route}`, githubHeaders(id, body), body, agent);
  assert.ok([200, 202].includes(status), `${route} ${id}: ${status}`);
};
const ok = async (worker, ...words) => {
  const { code, out, err } = await command(worker, ...words, '--json');
  assert.equal(code, 0, `${words.join(' ')}: ${err}`);
  return JSON.parse(out);
};
const refused = async (worker, code, says, ...words) => {
  const got = await command(worker, ...words);
  assert.equal(got.code, code, `${words.join(' ')}: ${got.code} ${got.out}${got.err}`);
  assert.match(got.err, says);
  assert.equal(got.out, '');
};
// The same configuration on another store, in a folder of its own.
const another = (name, store) => {
  fs.mkdirSync(file(name));
  const worker = new Worker(file(name), { store: { path: store }, routes });
  worker.port = 1; // of no use, until a real one is needed
  fs.writeFileSync(worker.file, JSON.stringify({
    ...worker.config, listen: { address: '127.0.0.1:1' }, admin: { socket: 'admin.sock' } }));
  return worker;
};
const mode = (name) => (fs.statSync(name).mode & 0o7777).toString(8);
const siblings = (name) => fs.readdirSync(folder).filter((other) => other.startsWith(name));

// --- 20 events that are not settled: 10 hang, 10 wait after a 503 --------------------------------------------

const worker = await new Worker(folder, { routes }).start();
const ids = (route) => Array.from({ length: 10 }, (_, i) => `${route}-${i}`);
const all = ['held', 'again'].flatMap((route) => ids(route).map((id) => ({ route, id })));
let release;
const hang = new Promise((resolve) => (release = resolve));
answer = async ({ id }) => {
  if (id.startsWith('done')) return 200;
  if (Number(id.split('-')[1]) % 2 === 0) return 429; // not applied: PENDING
  await hang; // RUNNING
  return 200;
};
for (const { route, id } of all) await send(worker, route, id);
await send(worker, 'held', 'done-0');
await send(worker, 'again', 'done-1');
await until('all to have been attempted', () => handler.invocations.length === 22);
await until('what does not hang to be over', async () => {
  const counts = [await worker.counts('held'), await worker.counts('again')];
  return counts.every((n) => n.running === 5 && n.pending === 5 && n.succeeded === 1);
});
assert.equal(await metric(worker, 'onced_last_backup_timestamp_seconds'), 0);
const before = Date.now();
const made = await ok(worker, 'backup', file('monday'));
assert.equal(made.path, file('monday'));
assert.match(made.store, /^[0-9a-f]{32}$/);
assert.equal(made.events, 22);
assert.equal(made.bytes, fs.statSync(file('monday/data.mdb')).size);
assert.ok(Date.parse(made.made) >= before - 1 && Date.parse(made.made) <= Date.now(), made.made);
assert.ok(made.took_ms >= 0);
assert.deepEqual(fs.readdirSync(file('monday')), ['data.mdb']);
assert.deepEqual([mode(file('monday')), mode(file('monday/data.mdb'))], ['700', '600']);
const stamp = await metric(worker, 'onced_last_backup_timestamp_seconds');
assert.ok(stamp >= before / 1000 && stamp <= Date.now() / 1000, String(stamp));
assert.match(worker.log(), new RegExp(`operator's order.*actor=${user}.*monday.*made`));

// Something in the way: nothing is touched.
fs.mkdirSync(file('full'));
fs.writeFileSync(file('full/mine'), 'mine');
await refused(worker, 64, /full: it is there already, and not empty/, 'backup', file('full'));
assert.equal(fs.readFileSync(file('full/mine'), 'utf8'), 'mine');
await refused(worker, 64, /monday: it is there already/, 'backup', file('monday'));
await refused(worker, 64, /tuesday: the folder \S+\/nowhere is not there: make it first/, 'backup', file('nowhere/tuesday'));
fs.mkdirSync(file('elsewhere'));
fs.symlinkSync('elsewhere', file('link'));
await refused(worker, 64, /link: it is a symbolic link/, 'backup', file('link'));
await refused(worker, 64, /copy: it is inside of the store/, 'backup', file('store/copy'));
assert.deepEqual(fs.readdirSync(file('elsewhere')).concat(siblings('link')), ['link']);
await refused(worker, 64, /DIR/, 'backup');
for (const body of ['{}', '{"path":1}', '{"path":"relative"}', '{"path":"/x","more":1}']) {
  assert.equal((await worker.admin('/v1/backup', 'POST', body)).status, 400, body);
}
assert.equal((await worker.admin('/v1/backup')).status, 405);
assert.deepEqual(siblings('monday').concat(siblings('full')), ['monday', 'full']);
const relative = await run(['backup', '-c', worker.file, 'relative'], { cwd: folder });
assert.equal(relative.code, 0, relative.err);
assert.match(relative.out, new RegExp(`^${file('relative')}: store ${made.store}, 22 events, \\d+ bytes, in \\S+\n$`));

// Now they settle: the original knows it, the backup does not.
answer = () => 200;
release();
for (const { route, id } of all.filter(({ id }) => Number(id.split('-')[1]) % 2 === 0)) {
  assert.equal((await command(worker, 'replay', route, id)).code, 0);
}
for (const route of ['held', 'again']) assert.equal((await worker.settled(route)).succeeded, 11);
const keys = new Map(handler.invocations.map((i) => [i.id, i.key]));
assert.equal(keys.size, 22);
await refused(worker, 75, /in use/, 'restore');
assert.equal(await worker.stop(), 0);
await refused(worker, 65, /no backup/, 'restore');

// --- the backup is no store --------------------------------------------------------------------------------------

const onBackup = another('on-backup', file('monday'));
const started = await run(['run', '-c', onBackup.file]);
assert.equal(started.code, 65, started.err);
for (const part of [`backup of store ${made.store}`, made.made, 'onced restore']) assert.ok(started.err.includes(part), `${part}: ${started.err}`);
for (const name of ['LOCK', 'lock.mdb']) fs.rmSync(file('monday', name)); // what was to write there leaves them
assert.equal((await ok(onBackup, 'verify-store')).records, 22);
assert.equal((await ok(onBackup, 'events', '--limit', '100')).events.length, 22);
assert.equal((await ok(onBackup, 'show', 'again', 'again-1')).state, 'RUNNING');
await refused(onBackup, 65, /is a store, and no backup/, 'restore', file('store'));
await refused(onBackup, 66, /nonexistent: No such file/, 'restore', file('nonexistent'));
assert.deepEqual(fs.readdirSync(file('monday')), ['data.mdb'], 'who only reads leaves nothing behind');

// --- restored into an empty place -------------------------------------------------------------------------------------

const restored = another('restored', 'store');
await refused(restored, 65, /there is no store here/, 'restore');
await refused(restored, 65, /no store here/, 'restore', file('full'));
const [held, again] = restored.config.routes;
const write = (config) => fs.writeFileSync(restored.file, JSON.stringify({ listen: { address: '127.0.0.1:1' }, admin: { socket: 'admin.sock' }, store: { path: 'store' }, ...config }));
write({ routes: [held] });
await refused(restored, 78, /unsettled events of route "again".*5 pending, 5 running/, 'restore', file('monday'));
write({ routes: [held, again] });
const done = await ok(restored, 'restore', file('monday')); // goes on where the copy is there
assert.equal(done.store, made.store);
assert.equal(done.made, made.made);
assert.equal(done.incarnation, 2);
assert.deepEqual(done.routes, [
  { name: 'held', uncertain: 10, due: 0, held: 10 },
  { name: 'again', uncertain: 10, due: 10, held: 0 },
]);
await refused(restored, 65, /no backup/, 'restore');
await refused(restored, 64, /restored into it already/, 'restore', file('monday'));
assert.equal((await ok(restored, 'verify-store')).bad, 0);
assert.equal((await ok(onBackup, 'verify-store')).bad, 0, 'the backup stays one');

handler.invocations.length = 0;
restored.port = null;
await restored.start();
await restored.settled('again');
assert.equal((await restored.counts('held')).dead, 10);
assert.deepEqual(handler.invocations.map((i) => i.id).sort(), ids('again').sort(), 'the hold route makes 0 attempts, the other one each');
for (const { id, key } of handler.invocations) assert.equal(key, keys.get(id), `${id}: the same key`);
for (const { route, id } of all) {
  const event = await ok(restored, 'show', route, id);
  const row = event.history.find(({ what }) => what === 'restored');
  assert.ok(row, JSON.stringify(event.history));
  assert.equal(row.actor, user);
  assert.ok(row.why.includes(made.made), row.why);
  assert.equal(event.state, route === 'held' ? 'DEAD' : 'SUCCEEDED', id);
  if (route === 'held') assert.equal(event.reason, 'uncertain', id);
}
assert.equal((await restored.event('held', 'done-0')).state, 'SUCCEEDED');
assert.ok(Math.abs(await metric(restored, 'onced_last_backup_timestamp_seconds') - Date.parse(made.made) / 1000) < 0.01, 'the last backup is that one');
assert.equal((await command(restored, 'replay', 'held', 'held-0')).code, 75, 'in doubt');
assert.equal((await command(restored, 'resolve', 'held', 'held-0', '--applied')).code, 0);
assert.equal(await restored.stop(), 0);

// Offline, and of a backup that lies where the store belongs.
const offline = await ok(restored, 'backup', file('tuesday'));
assert.equal(offline.events, 22);
const inPlace = another('in-place', file('tuesday'));
assert.equal((await ok(inPlace, 'restore')).incarnation, 3);
assert.equal((await ok(inPlace, 'show', 'held', 'held-1')).state, 'DEAD');

// A copy that was damaged since is found before anything is made of it.
const bytes = fs.readFileSync(file('monday/data.mdb'));
const page = 4096;
let damaged = 0;
for (let at = 2; at < bytes.length / page; at += 3) {
  const other = Buffer.from(bytes);
  other.fill(0x5a, at * page + 40, (at + 1) * page);
  const site = another(`damaged-${at}`, 'store');
  fs.mkdirSync(file(`bad-${at}`));
  fs.writeFileSync(file(`bad-${at}/data.mdb`), other);
  const found = (await command(another(`seen-${at}`, file(`bad-${at}`)), 'verify-store')).code !== 0;
  if (found) {
    await refused(site, 65, /damaged|bad/, 'restore', file(`bad-${at}`));
    assert.equal(fs.existsSync(path.join(site.folder, 'store')), false);
    damaged++;
  } else { // a page that is free: the copy is as good as the other
    await ok(site, 'restore', file(`bad-${at}`));
    assert.equal((await ok(site, 'events', '--limit', '100')).events.length, 22);
  }
}
assert.ok(damaged > 3, String(damaged));

// A disk that is only for reading, where it can be made one.
fs.mkdirSync(file('shelf'));
if (spawnSync('mount', ['--bind', file('monday'), file('shelf')]).status === 0) {
  try {
    assert.equal(spawnSync('mount', ['-o', 'remount,bind,ro', file('shelf')]).status, 0);
    const shelf = another('on-shelf', file('shelf'));
    assert.equal((await ok(shelf, 'verify-store')).records, 22);
    assert.equal((await ok(shelf, 'events', '--limit', '100')).events.length, 22);
    assert.equal((await ok(another('off-shelf', 'store'), 'restore', file('shelf'))).incarnation, 2);
  } finally {
    spawnSync('umount', [file('shelf')]);
  }
} else {
  console.log('nothing can be mounted here: the read-only backup is left out');
}

// --- under load ----------------------------------------------------------------------------------------------------------

const busy = await new Worker(makeFolder('backup-load'), {
  log: { level: 'warn' },
  routes: [githubRoute(handler), { ...routes[0], handler: { noop: {} } }],
}).start();
const acked = [];
const stop = { now: false };
let next = 0;
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
const senders = Array.from({ length: 16 }, async () => {
  while (!stop.now) {
    const id = `load-${next++}`;
    await send(busy, 'held', id, agent);
    acked.push(id);
  }
});
await until('a load', () => acked.length > 2000);
const backups = [];
for (let i = 0; i < 3; i++) {
  const known = acked.length;
  const target = path.join(busy.folder, `load-${i}`);
  const { events } = await ok(busy, 'backup', target);
  const meanwhile = acked.length - known;
  assert.ok(events >= known, `${events} events, ${known} were acknowledged before`);
  backups.push({ target, known, meanwhile });
  await until('more of it', () => acked.length > known + 1000);
}
stop.now = true;
await Promise.all(senders);
agent.destroy();
assert.ok(backups.some(({ meanwhile }) => meanwhile > 0), 'senders are answered while it is copied');
assert.equal(await busy.stop(), 0);
for (const { target, known } of backups) {
  const copy = new Worker(path.join(target, '..', `${path.basename(target)}.site`), {});
  fs.mkdirSync(copy.folder);
  fs.writeFileSync(copy.file, JSON.stringify({ store: { path: target }, listen: { address: '127.0.0.1:1' }, admin: { socket: 'admin.sock' }, routes: busy.config.routes }));
  assert.equal((await ok(copy, 'verify-store')).bad, 0);
  await ok(copy, 'restore');
  const there = new Set();
  for (let cursor = null; ;) {
    const page = await ok(copy, 'events', '--limit', '1000', ...(cursor === null ? [] : ['--cursor', cursor]));
    for (const event of page.events) there.add(event.id);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  const missing = acked.slice(0, known).filter((id) => !there.has(id));
  assert.deepEqual(missing, [], `${missing.length} of ${known} acknowledged events are not in ${target}`);
}

// --- a disk that is full ---------------------------------------------------------------------------------------------------

const small = file('small');
fs.mkdirSync(small);
if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', small]).status === 0) {
  try {
    await refused(onBackup, 74, /small\/copy: copy: No space left/, 'backup', path.join(small, 'copy'));
    assert.deepEqual(fs.readdirSync(small), [], 'nothing is left of it');
    await refused(onBackup, 64, /mount point/, 'backup', small);
    assert.deepEqual(siblings('small'), ['small']);
  } finally {
    spawnSync('umount', [small]);
  }
} else {
  console.log('no tmpfs can be mounted here: the full disk is left out');
}

// --- kill -9 in the middle ---------------------------------------------------------------------------------------------------

// A worker that dies at that mark, and what is found beside its target.
const marked = spawnSync(program, ['version'], { env: { ONCED_KILL_AT: 'nowhere:1' } }).status === 64;
const isBackup = async (folderName) => {
  const site = another(`try-${Math.random().toString(36).slice(2)}`, folderName);
  const { code, err } = await command(site, 'restore');
  if (code !== 0) {
    assert.equal(code, 65, err);
    assert.notEqual((await command(site, 'verify-store')).code, 0);
    return false;
  }
  assert.equal((await ok(site, 'verify-store')).bad, 0);
  return true;
};
const killed = async (env, target, when) => {
  const child = spawn(program, ['run', '-c', worker.file], { env: { ...process.env, ...env }, stdio: 'ignore' });
  worker.child = child;
  await until('the worker to be ready', async () => (await worker.admin('/readyz').catch(() => null))?.status === 200);
  const ended = once(child, 'exit');
  const order = command(worker, 'backup', target);
  const timer = when === null ? null : setTimeout(() => child.kill('SIGKILL'), when);
  const { code } = await order;
  if (when !== null) {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
  await ended;
  const left = siblings(path.basename(target));
  const whole = fs.existsSync(target);
  assert.ok(whole || code !== 0, 'what was reported is there');
  for (const name of left.filter((name) => name !== path.basename(target))) {
    assert.equal(when === null && env.ONCED_KILL_AT.startsWith('backup-after'), false, name);
    // Between its two renames it is whole, and only its folder has another name.
    const taken = await isBackup(file(name));
    assert.ok(!taken || when !== null, `${name} is taken for a backup`);
    fs.rmSync(file(name), { recursive: true });
  }
  if (whole) assert.equal(await isBackup(target), true);
  return whole;
};
// One that is told to end lets a backup go and leaves nothing of it.
const stopped = async (target, when) => {
  await worker.start();
  const order = command(worker, 'backup', target);
  await new Promise((resolve) => setTimeout(resolve, when));
  assert.equal(await worker.stop(), 0);
  const { code, err } = await order;
  // One that has begun is told what came of it; another may have come too late to be heard.
  const begun = worker.log().includes(`backup=${target} result=begun`);
  assert.ok(code === 0 || code === 75 || (code === 74 && !begun), `${code}: ${err}`);
  assert.deepEqual(siblings(path.basename(target)), fs.existsSync(target) ? [path.basename(target)] : []);
  if (code === 0) assert.equal(await isBackup(target), true);
};
let whole = 0;
const points = marked ? ['backup-copied', 'backup-before-rename', 'backup-after-rename'] : [];
for (const point of points) {
  assert.equal(await killed({ ONCED_KILL_AT: `${point}:1` }, file(`at-${point}`), null), point === 'backup-after-rename', point);
}
for (let i = 0; i < 12; i++) whole += await killed({}, file(`killed-${i}`), i * 4);
worker.port = null;
for (let i = 0; i < 4; i++) await stopped(file(`stopped-${i}`), i * 8);
assert.equal((await command(worker, 'verify-store')).code, 0, 'the store itself is well');
// A restore that dies at that mark is simply given again.
const cut = marked ? ['backup-copied', 'backup-before-rename', 'backup-after-rename', 'restore-before-commit', 'restore-after-commit', 'restore-before-end'] : [];
for (const point of cut) {
  const site = another(`cut-${point}`, 'store');
  const words = ['restore', '-c', site.file, file('monday')];
  const dead = await run(words, { env: { ...process.env, ONCED_KILL_AT: `${point}:1` } });
  assert.equal(dead.signal, 'SIGKILL', `${point}: ${dead.err}`);
  if (fs.existsSync(path.join(site.folder, 'store'))) assert.equal((await run(['run', '-c', site.file])).code, 65, `${point}: it still is a backup`);
  const { code, err } = await run(words);
  assert.equal(code, 0, `${point}: ${err}`);
  for (const { route, id } of all) {
    const { state, history } = await ok(site, 'show', route, id);
    assert.equal(state, route === 'held' ? 'DEAD' : 'UNCERTAIN', `${point}: ${id}`);
    assert.equal(history.filter(({ what }) => what === 'restored').length, 1, `${point}: ${id}`);
  }
  assert.equal((await ok(site, 'verify-store')).bad, 0);
}
await handler.close();
console.log(`20 unsettled events restored: 0 attempts held, 10 under the same keys; ${acked.length} events sent while 3 backups were made, ` +
  `none acknowledged before is missing; ${points.length} marks and 12 moments of kill -9, ${whole} backups whole, no half one accepted; ` +
  `${cut.length} restores cut short and repeated`);
