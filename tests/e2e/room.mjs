// SPDX-License-Identifier: MIT
// No room: the disk is full, the store has reached its size, a route's dead
// letters have. New events are answered 503 and told when to come back,
// repeats are answered as ever, nothing that was acknowledged is lost, and
// the worker goes on by itself when there is room again.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, parallel, until } from './lib.mjs';
import { command, inState, metric } from './support/fault.mjs';

// A small disk is mounted where only this process and its children see it.
if (process.env.ONCED_TEST_NAMESPACE === undefined && process.getuid() === 0 && spawnSync('unshare', ['-m', 'true']).status === 0) {
  const again = spawnSync('unshare', ['-m', process.execPath, import.meta.filename ?? process.argv[1]],
    { stdio: 'inherit', env: { ...process.env, ONCED_TEST_NAMESPACE: '1' } });
  process.exit(again.status ?? 1);
}

const held = [];
let holds = false;
let verdict = () => 200;
const handler = await new Handler((invocation) => (holds ? new Promise((resolve) => held.push(resolve)) : verdict(invocation))).listen();
const release = () => held.splice(0).forEach((resolve) => resolve(200));
const acked = new Set();

const post = (worker, target, id, size) => {
  const body = JSON.stringify({ id, pad: 'x'.repeat(size) });
  return worker.post(target, githubHeaders(id, body), body);
};
async function send(worker, id, size = 100) {
  const answer = await post(worker, '/github', id, size);
  assert.ok([200, 202, 503].includes(answer.status), `${id}: ${answer.status} ${answer.body}`);
  if (answer.status === 503) {
    assert.ok(Number(answer.headers['retry-after']) >= 1, 'it says when to come back');
    assert.equal(answer.headers['content-type'], 'application/problem+json');
    assert.equal(answer.headers['idempotency-status'], 'refused');
  } else {
    acked.add(id);
  }
  return answer.status;
}
let next = 0;
async function fill(worker, size, width = 1) {
  let full = false;
  await parallel(width, Array.from({ length: width }, () => async () => {
    for (let i = 0; !full && i < 20000; i++) full ||= (await send(worker, `fill-${next++}`, size)) === 503;
  }));
  assert.ok(full, 'it never was full');
}
const goesOn = (worker) => until('a new event to be taken again', async () => (await send(worker, `on-${next++}`)) === 202);

async function isComplete(worker) {
  await worker.settled('github');
  for (const id of acked) {
    const event = await worker.event('github', id);
    assert.equal(event.state, 'SUCCEEDED', id);
    const explained = event.history.filter((row) => ['retry', 'uncertain', 'crashed'].includes(row.what)).length;
    const seen = handler.of(id).length;
    assert.ok(seen >= 1 && seen <= 1 + explained, `${id}: ${seen} times, ${explained} explained`);
  }
}
async function isBackPressure(worker) {
  assert.equal((await worker.admin('/readyz')).status, 200, 'ready');
  assert.equal((await worker.admin('/healthz')).status, 200, 'healthy');
  await until('the status to say so', async () => (await worker.json('/v1/status')).store.full);
  assert.ok(await metric(worker, 'onced_deliveries_total{route="github",outcome="no-room"}') > 0);
}
const quick = { backoff: '10ms', max_backoff: '50ms' };
const short = { keep: { envelope: '1s', result: '1s' }, retry: quick };

// --- the disk is full -----------------------------------------------------------------------------

async function onSmallDisk() {
  const folder = makeFolder('room-disk');
  const disk = path.join(folder, 'store');
  fs.mkdirSync(disk);
  const mount = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk], { encoding: 'utf8' });
  if (mount.status !== 0) return `not permitted here: ${mount.stderr.trim()}`;

  const worker = await new Worker(folder, { store: { max_size: '16MiB' }, shutdown_timeout: '1s', routes: [githubRoute(handler, short)] }).start();
  const balloon = path.join(disk, 'balloon');
  const blow = () => {
    const fd = fs.openSync(balloon, 'a');
    try {
      for (const part = Buffer.alloc(4096); ;) fs.writeSync(fd, part);
    } catch (error) {
      assert.equal(error.code, 'ENOSPC');
    }
    fs.closeSync(fd);
  };
  const prick = () => fs.rmSync(balloon);

  // Somebody else fills it, with attempts under way and more that wait.
  assert.equal(await send(worker, 'before'), 202);
  await inState(worker, 'github', 'before', 'SUCCEEDED');
  holds = true;
  for (let i = 0; i < 20; i++) assert.equal(await send(worker, `during-${i}`), 202);
  await until('16 attempts', () => held.length === 16);
  blow();
  await fill(worker, 20000);
  await isBackPressure(worker);
  assert.equal(await send(worker, 'before'), 200, 'a repeat is answered');
  assert.equal(await send(worker, 'during-0'), 200);
  release();
  holds = false;
  assert.equal(await send(worker, `fill-${next++}`), 503);
  assert.equal((await worker.event('github', 'before')).state, 'SUCCEEDED', 'reading goes on');
  const order = await command(worker, 'pause', 'github');
  assert.ok([0, 75].includes(order.code), order.err);
  prick();
  if (order.code === 0) assert.equal((await command(worker, 'resume', 'github')).code, 0);
  await goesOn(worker);
  await isComplete(worker);

  // Killed, and started, while it is full.
  holds = true;
  assert.equal(await send(worker, 'killed'), 202);
  await until('the attempt', () => held.length === 1);
  blow();
  await fill(worker, 20000);
  await worker.kill();
  release();
  holds = false;
  await worker.start().catch((error) => assert.match(error.message, /onced: .*(no room|space|full)/i));
  if (worker.child) {
    assert.equal(await send(worker, `fill-${next++}`), 503);
    assert.equal(await worker.stop(), 0);
  }
  prick();
  await worker.start();
  await goesOn(worker);
  await isComplete(worker);

  // It fills it itself with what waits; once that is handled, and need not be
  // kept, there is room again.
  holds = true;
  await fill(worker, 60000);
  await isBackPressure(worker);
  holds = false;
  release();
  await isComplete(worker);
  await goesOn(worker);
  await isComplete(worker);

  assert.equal(await worker.stop(), 0);
  assert.equal((await command(worker, 'verify-store')).code, 0);
  assert.equal(spawnSync('umount', [disk]).status, 0);
  return null;
}

// --- the store has reached its size --------------------------------------------------------------

async function onSmallStore() {
  acked.clear();
  const worker = await new Worker(makeFolder('room-size'), { store: { max_size: '16MiB' }, routes: [githubRoute(handler, { retry: quick })] }).start();
  assert.equal((await command(worker, 'pause', 'github')).code, 0);
  await fill(worker, 400000, 16);
  await isBackPressure(worker);
  const status = await worker.json('/v1/status');
  assert.ok(status.store.bytes < status.store.max_bytes * 2, `${status.store.bytes} of ${status.store.max_bytes}`);
  assert.equal(await send(worker, [...acked][0]), 200, 'a repeat is answered');
  // What was taken is still handled, and recorded.
  assert.equal((await command(worker, 'resume', 'github')).code, 0);
  await isComplete(worker);
  assert.equal(await send(worker, `fill-${next++}`), 503, 'still full: it is all remembered');
  // More room helps.
  assert.equal(await worker.stop(), 0);
  worker.config.store.max_size = '64MiB';
  await worker.start();
  assert.equal(await send(worker, `fill-${next++}`), 202);
  await isComplete(worker);
  assert.equal(await worker.stop(), 0);
  assert.equal((await command(worker, 'verify-store')).code, 0);
}

// --- the dead letters of a route have ---------------------------------------------------------------

async function withDeadLetters() {
  const route = (name, onFull) => githubRoute(handler, { name, source: { http: { path: `/${name}` } }, retry: quick,
    dead_letter: { max_bytes: '1MiB', on_full: onFull } });
  const worker = await new Worker(makeFolder('room-dead'), { routes: [route('stops', 'stop-route'), route('drops', 'oldest'), githubRoute(handler)] }).start();
  verdict = ({ headers }) => (headers['onced-route'] === 'github' ? 200 : 404);

  const stopped = [];
  const refusal = await until('503', async () => {
    const answer = await post(worker, '/stops', `dead-${stopped.length}`, 30000);
    if (answer.status === 503) return answer;
    assert.equal(answer.status, 202);
    stopped.push(`dead-${stopped.length}`);
    await worker.settled('stops');
    return null;
  });
  assert.ok(Number(refusal.headers['retry-after']) >= 1);
  assert.ok(stopped.length >= 30 && stopped.length <= 40, `${stopped.length} dead letters of 30 kB are 1 MiB`);
  assert.equal((await post(worker, '/stops', 'dead-0', 30000)).status, 200, 'a repeat is answered');
  assert.equal((await post(worker, '/github', 'beside', 100)).status, 202, 'the other routes go on');
  assert.equal((await worker.counts('stops')).dead, stopped.length);
  verdict = () => 200;
  assert.equal((await command(worker, 'replay', '--dead', '--route', 'stops', '--wait')).code, 0);
  assert.equal((await worker.counts('stops')).succeeded, stopped.length);
  assert.equal((await post(worker, '/stops', 'again', 30000)).status, 202, 'and so does it, once they are cleared');

  verdict = () => 404;
  for (let i = 0; i < 50; i++) {
    assert.equal((await post(worker, '/drops', `drop-${i}`, 30000)).status, 202);
    await worker.settled('drops');
  }
  const left = (await worker.counts('drops')).dead;
  assert.ok(left >= 30 && left <= 40, `${left} are kept`);
  assert.equal((await worker.event('drops', 'drop-49')).state, 'DEAD', 'the newest are');
  assert.notEqual((await worker.event('drops', 'drop-0')).state, 'DEAD', 'the oldest went');
  assert.equal((await post(worker, '/drops', 'drop-0', 30000)).status, 200, 'its id is still known');
  verdict = () => 200;
  assert.equal(await worker.stop(), 0);
  assert.equal((await command(worker, 'verify-store')).code, 0);
}

await onSmallStore();
await withDeadLetters();
acked.clear();
const skipped = process.env.ONCED_TEST_NAMESPACE === undefined ? 'no mount namespace of one\'s own here' : await onSmallDisk();
await handler.close();
console.log(`without room nothing is lost and repeats are answered; ${skipped === null ? 'on a full disk, too' : `a full disk was not tried: ${skipped}`}`);
