// SPDX-License-Identifier: MIT
// The worker is killed while a program runs for it. The program lives on,
// and no second one starts beside it: not before it has ended, or its time is
// over and its group has been killed.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Worker, githubHeaders, githubSecret, makeFolder, until } from './lib.mjs';
import { inState, isAlive, script } from './support/fault.mjs';

const folder = makeFolder('orphan');
const file = (name) => path.join(folder, name);
const lines = (name) => (fs.existsSync(file(name)) ? fs.readFileSync(file(name), 'utf8').trimEnd().split('\n') : []);

// None of them outlives a test that fails.
process.on('exit', (code) => {
  if (code === 0) return;
  for (const name of fs.readdirSync(folder).filter((entry) => entry.endsWith('.ledger'))) {
    for (const pid of lines(name).flatMap((line) => line.split(' ').slice(1)).filter(Number)) {
      if (isAlive(pid)) process.kill(pid, 'SIGKILL');
    }
  }
});

// The first attempt waits for the file "<id>.go"; each writes down who it is.
script(folder, 'waits', `echo "$ONCED_ATTEMPT $$ $IDEMPOTENCY_KEY" >> "$ONCED_EVENT_ID.ledger"
[ "$ONCED_ATTEMPT" = 1 ] || exit 0
while [ ! -e "$ONCED_EVENT_ID.go" ]; do sleep 0.05; done`);
script(folder, 'for-ever', `sleep 600 & echo "$ONCED_ATTEMPT $$ $!" >> "$ONCED_EVENT_ID.ledger"
[ "$ONCED_ATTEMPT" = 1 ] || { kill $!; exit 0; }
trap "" TERM; while :; do wait; done`);

const route = (name, command, timeout, concurrency, more) => ({ name, source: { http: { path: `/${name}` } },
  verify: { scheme: 'github', secrets: [{ value: githubSecret }] }, id: ['header:X-GitHub-Delivery'],
  handler: { exec: { command: [command], timeout, concurrency } }, retry: { backoff: '10ms', max_backoff: '50ms' }, ...more });
const worker = await new Worker(folder, {
  routes: [route('waits', './waits', '10m', 2), route('held', './waits', '10m', 2, { on_uncertain: 'hold' }), route('late', './for-ever', '5s', 1)],
}).start();
const send = async (name, id) => {
  const body = JSON.stringify({ id });
  assert.equal((await worker.post(`/${name}`, githubHeaders(id, body), body)).status, 202, id);
};
const started = (id) => until(`the program of ${id}`, () => lines(`${id}.ledger`).length === 1 && lines(`${id}.ledger`)[0].split(' '));

await send('waits', 'w-1');
await send('held', 'h-1');
await send('late', 'l-1');
const [, first, key] = await started('w-1');
const [, held] = await started('h-1');
const [, late, child] = await started('l-1');
fs.writeFileSync(file('w-2.go'), '');
fs.writeFileSync(file('w-3.go'), '');
await send('waits', 'w-2');

await worker.kill();
assert.ok(isAlive(first) && isAlive(held) && isAlive(late), 'the programs live on');
await worker.start();

// Its event stays as it is while others are handled beside it, and a second
// crash changes nothing.
await inState(worker, 'waits', 'w-2', 'SUCCEEDED', 15000);
const running = await worker.event('waits', 'w-1');
assert.equal(running.state, 'RUNNING');
assert.equal(running.attempts, 1);
await send('waits', 'w-3');
await inState(worker, 'waits', 'w-3', 'SUCCEEDED', 15000);
await worker.kill();
await worker.start();
assert.equal((await worker.event('waits', 'w-1')).state, 'RUNNING');
assert.equal((await worker.event('held', 'h-1')).state, 'RUNNING');

// A repeat starts none, nor does an order.
const body = JSON.stringify({ id: 'w-1' });
assert.equal((await worker.post('/waits', githubHeaders('w-1', body), body)).status, 200);
const order = await worker.command('replay', 'waits', 'w-1');
assert.notEqual(order.code, 64);
assert.equal((await worker.event('waits', 'w-1')).state, 'RUNNING', order.out + order.err);
assert.equal(lines('w-1.ledger').length, 1, 'no second program beside it');
assert.ok(isAlive(first));

// One whose time is over is killed, with its group, though it ignores SIGTERM.
await inState(worker, 'late', 'l-1', 'SUCCEEDED', 30000);
assert.ok(!isAlive(late) && !isAlive(child), 'the group is gone');
assert.deepEqual(lines('l-1.ledger').map((line) => line.split(' ')[0]), ['1', '2']);

// When it ends: attempt 2, under the same key. Or a person decides.
fs.writeFileSync(file('w-1.go'), '');
const done = await inState(worker, 'waits', 'w-1', 'SUCCEEDED', 20000);
assert.equal(done.attempts, 2);
assert.deepEqual(lines('w-1.ledger').map((line) => line.split(' ')[0]), ['1', '2']);
assert.equal(lines('w-1.ledger')[1].split(' ')[2], key);
assert.ok(done.history.some((row) => row.what === 'crashed'), JSON.stringify(done.history));

assert.ok(isAlive(held));
fs.writeFileSync(file('h-1.go'), '');
const dead = await inState(worker, 'held', 'h-1', 'DEAD', 20000);
assert.equal(dead.reason, 'uncertain');
assert.equal(lines('h-1.ledger').length, 1);

assert.equal(await worker.stop(), 0);
assert.equal((await worker.command('verify-store')).code, 0);
console.log('programs of a killed worker were left alone until they ended or their time was over; none ran beside another');
