// SPDX-License-Identifier: MIT
// The checker as a program: its exit codes, what it tells, and ledgers in
// several files. What it finds is tests/unit/checker's matter.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { makeFolder, program } from './lib.mjs';

const checker = path.join(path.dirname(program), 'onced_checker');
const folder = makeFolder('checker');
let files = 0;

function write(...lines) {
  const file = path.join(folder, `${++files}.jsonl`);
  fs.writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return file;
}

function run(...words) {
  const { status, stdout, stderr } = spawnSync(checker, words, { encoding: 'utf8' });
  return { status, out: stdout, err: stderr };
}

const route = { l: 'route', route: 'r', namespace: 'r', on_uncertain: 'retry', after_dead: 'continue', ordered: false };
const sent = { l: 'sent', t: 1, try: 1, route: 'r', id: 'a', hash: 'h' };
const resp = { l: 'resp', t: 3, try: 1, status: 202 };
const inv = { l: 'inv', t: 2, n: 1, route: 'r', id: 'a', hash: 'h', key: 'k', attempt: 1, process: 1 };
const done = { l: 'done', t: 4, n: 1, end: 'status', status: 200, effect: true };
const quiet = { l: 'quiet', t: 5 };
const event = { route: 'r', namespace: 'r', tenant: '', id: 'a', state: 'SUCCEEDED', run: 1, attempts: 1, origin: 1, history: [] };
const dump = write({ onced_dump: 1 }, event, { end: true, events: 1 });
const whole = write(route, sent, inv, resp, done, quiet, { ...event, l: 'event' });

let said = run(whole);
assert.deepEqual([said.status, said.err], [0, '']);
assert.match(said.out, /^1 events, 1 acknowledged, 1 exported; 1 invocations, 0 of them further ones; 0 crashes, 0 orders\nnothing is broken\n$/);

// Parts of one ledger, each in order; the routes come before, the dump behind.
said = run(write(inv, done), dump, write(route, sent, resp, quiet));
assert.equal(said.status, 0, said.out + said.err);

said = run(write(route, inv, done), dump);
assert.equal(said.status, 1);
assert.match(said.out, /^C2 r\/a: invocation 1 is a phantom: nobody had sent the event\n {4}state SUCCEEDED/);
assert.match(said.out, /\nbroken: C2 \(1\), C8 \(1\)\n$/);
assert.match(run('-n', '0', write(route, inv, done), dump).out, /^0 events/);

said = run(write(route, sent, resp, quiet, { ...event, l: 'event', state: 'PENDING', attempts: 0, due: 'tomorrow' }));
assert.equal(said.status, 2);
assert.match(said.out, /^C9 r\/a: stuck: it never settled\n {4}state PENDING, due tomorrow,/);

assert.equal(run('-x').status, 64);
said = run(write(route, sent, sent));
assert.equal(said.status, 65);
assert.match(said.err, /^onced_checker: .*jsonl:3: line 3: try 1 stands there twice\n$/);
assert.equal(run(write(route, sent, resp, { l: 'quiet', t: 2 })).status, 65, 'time goes back');
assert.equal(run(whole, write({ l: 'nothing' })).status, 65);
assert.equal(run(whole, write({ onced_dump: 1 }, event)).status, 65, 'a dump without its end');
assert.equal(run(path.join(folder, 'nowhere')).status, 66);
console.log('the checker tells what is broken, and how');
