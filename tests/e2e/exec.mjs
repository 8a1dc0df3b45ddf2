// SPDX-License-Identifier: MIT
// A handler that is a program: what it is given, and what becomes of an
// event whose program fails, floods, hangs, or leaves something behind.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Worker, githubHeaders, githubSecret, makeFolder, until } from './lib.mjs';
import { inState, isAlive, metric, script } from './support/fault.mjs';

const folder = makeFolder('exec');
const file = (name) => path.join(folder, name);
const read = (name) => fs.readFileSync(file(name), 'utf8');

// Each attempt writes a line to a ledger of its own program.
const programs = {
  good: 'cat; echo done',
  exit0: 'exit 0',
  exit1: '[ "$ONCED_ATTEMPT" = 2 ] || exit 1',
  exit255: '[ "$ONCED_ATTEMPT" = 2 ] || exit 255',
  exit64: 'exit 64',
  exit65: 'echo "no such account" >&2; exit 65',
  exit75: '[ "$ONCED_ATTEMPT" = 3 ] || exit 75',
  exit78: 'exit 78',
  exit79: '[ "$ONCED_ATTEMPT" = 2 ] || exit 79',
  killed: '[ "$ONCED_ATTEMPT" = 2 ] || kill -9 $$',
  aborted: '[ "$ONCED_ATTEMPT" = 2 ] || kill -6 $$',
  stderr: 'head -c 10000000 /dev/zero | tr "\\0" "e" >&2; i=0; while [ $i -lt 2000 ]; do echo "line $i" >&2; i=$((i+1)); done',
  stdout: 'head -c 10485760 /dev/zero | tr "\\0" "o"',
  noise: 'printf "\\033[31mred\\033[0m \\377\\376 \\000 tab\\tquote\\" back\\\\slash\\rts=1 level=error msg=forged\\n{\\"level\\":\\"error\\"}\\nno end" >&2',
  deaf: 'exec 0<&-; exit 0',
  background: 'sleep 300 & echo $! > background.pid; echo out',
  daemon: 'setsid sleep 300 & echo $! > daemon.pid; echo out',
  ignores: '[ "$ONCED_ATTEMPT" = 2 ] && exit 0; trap "" TERM; sleep 300 & echo $! > ignores.pid; while :; do wait; done',
  hangs: '[ "$ONCED_ATTEMPT" = 2 ] && exit 0; trap "echo got-term; exit 0" TERM; sleep 300 & wait',
};
for (const [name, text] of Object.entries(programs)) script(folder, name, `echo "$ONCED_ATTEMPT $IDEMPOTENCY_KEY" >> ${name}.ledger\n${text}`);
fs.writeFileSync(file('environment.mjs'), `#!${process.execPath}
import fs from 'node:fs';
const stat = fs.fstatSync(3);
const lease = fs.readlinkSync('/proc/self/fd/3');
// node opens descriptors of its own: those that it was started with are 0-3.
fs.writeFileSync('environment.json', JSON.stringify({
  env: process.env, argv: process.argv.slice(2), cwd: process.cwd(), lease, isFile: stat.isFile(),
  stdin: fs.readFileSync(0).toString('base64'), status: fs.readFileSync('/proc/self/status', 'utf8') }));
`, { mode: 0o755 });
script(folder, 'group', 'echo $$; cut -d" " -f5 /proc/$$/stat');

const route = (name, exec, more) => ({ name, source: { http: { path: `/${name}` } }, verify: { scheme: 'github', secrets: [{ value: githubSecret }] },
  id: ['header:X-GitHub-Delivery'], handler: { exec: { command: [`./${name}`], timeout: '20s', concurrency: 2, ...exec } },
  retry: { backoff: '10ms', max_backoff: '50ms' }, ...more });
process.env.ONCED_TEST_OWN = 'not to be passed on';
const worker = await new Worker(folder, {
  log: { format: 'json' },
  routes: [
    ...Object.keys(programs).map((name) => route(name, ['ignores', 'hangs'].includes(name) ? { timeout: '500ms' } : {})),
    route('environment', { command: ['./environment.mjs', 'one', '$TWO', '* *'], environment: { EXTRA: 'e=1', SECRET: { env: 'ONCED_TEST_OWN' } } },
      { source: { http: { path: '/environment/*' } }, tenant: 'header:X-Account' }),
    route('descriptors', { command: ['ls', '-l', '/proc/self/fd'] }),
    route('group'),
  ],
}).start();
const send = async (name, id = `${name}-1`, body = JSON.stringify({ id }), headers = {}, target = `/${name}`) => {
  const { status, body: said } = await worker.post(target, { ...githubHeaders(id, body), ...headers }, body);
  assert.equal(status, 202, `${name}: ${said}`);
};
const attempts = (name) => read(`${name}.ledger`).trimEnd().split('\n');

// --- what it is given ---------------------------------------------------------------------------

const odd = Buffer.from([0, 1, 2, 255, 10, 13, ...Buffer.from('body')]);
await send('environment', 'event/1 é', odd,
  { 'X-Account': 'acme', 'X-Odd': 'a "b" $(c)\tx', 'X_Under': 'no', 'X-Twice': ['1', '2'], 'Content-Type': 'application/odd; x=1',
    'X-GitHub-Delivery': Buffer.from('event/1 é').toString('latin1') }, '/environment/a%20b/?q=1&r=%26');
await until('the program', () => fs.existsSync(file('environment.json')) && read('environment.json').length > 0);
const event = await until('it to settle', async () => {
  const { status, body } = await worker.admin(`/v1/events/environment/${encodeURIComponent('event/1 é')}?tenant=acme`);
  return status === 200 && JSON.parse(body).state === 'SUCCEEDED' && JSON.parse(body);
});
const given = JSON.parse(read('environment.json'));
assert.equal(given.stdin, odd.toString('base64'), 'standard input is the body');
assert.deepEqual(given.argv, ['one', '$TWO', '* *'], 'no shell');
assert.equal(given.cwd, fs.realpathSync(folder));
const expected = {
  ONCED_ROUTE: 'environment', ONCED_EVENT_ID: 'event/1 é', ONCED_TENANT: 'acme', ONCED_ATTEMPT: '1', IDEMPOTENCY_KEY: event.idempotency_key,
  CONTENT_TYPE: 'application/odd; x=1', ONCED_METHOD: 'POST', ONCED_PATH: '/environment/a%20b/', ONCED_QUERY: 'q=1&r=%26',
  ONCED_HEADER_X_ACCOUNT: 'acme', ONCED_HEADER_X_ODD: 'a "b" $(c)\tx', ONCED_HEADER_X_TWICE: '1, 2', ONCED_HEADER_X_GITHUB_EVENT: 'push',
  EXTRA: 'e=1', SECRET: 'not to be passed on',
};
for (const [name, value] of Object.entries(expected)) assert.equal(given.env[name], value, name);
for (const name of ['PATH', 'HOME', 'LANG', 'TZ']) assert.equal(given.env[name], process.env[name], name);
const known = new Set([...Object.keys(expected), 'PATH', 'HOME', 'LANG', 'TZ']);
assert.deepEqual(Object.keys(given.env).filter((name) => !known.has(name) && !name.startsWith('ONCED_HEADER_')), [], 'and nothing else');
assert.equal(given.env.ONCED_HEADER_X_UNDER, undefined);
assert.match(given.lease, /\/store\/lease\/environment\.\d+$/);
assert.match(given.status, /^SigBlk:\s+0+$/m, 'no signal is blocked');
assert.match(given.status, /^NoNewPrivs:\s+1$/m);

// ls has one descriptor more: of the folder that it lists.
await send('descriptors');
const listed = (await inState(worker, 'descriptors', 'descriptors-1', 'SUCCEEDED')).result.body;
const open = [...listed.matchAll(/ (\d+) -> (.*)$/gm)].map(([, fd, target]) => [Number(fd), target]);
assert.deepEqual(open.map(([fd]) => fd), [0, 1, 2, 3, 4], listed);
assert.match(open[3][1], /\/lease\/descriptors\.\d+$/);
assert.match(open[4][1], /^\/proc\//);

await send('group');
const [pid, group] = (await inState(worker, 'group', 'group-1', 'SUCCEEDED')).result.body.trim().split('\n');
assert.equal(group, pid, 'a process group of its own');

// --- how it ends -----------------------------------------------------------------------------------

const ends = {
  good: ['SUCCEEDED', 1], exit0: ['SUCCEEDED', 1], exit1: ['SUCCEEDED', 2], exit255: ['SUCCEEDED', 2],
  exit64: ['DEAD', 1], exit65: ['DEAD', 1], exit75: ['SUCCEEDED', 3], exit78: ['DEAD', 1], exit79: ['SUCCEEDED', 2],
  killed: ['SUCCEEDED', 2], aborted: ['SUCCEEDED', 2], stderr: ['SUCCEEDED', 1], stdout: ['SUCCEEDED', 1], noise: ['SUCCEEDED', 1], deaf: ['SUCCEEDED', 1],
  background: ['SUCCEEDED', 1], daemon: ['SUCCEEDED', 1], ignores: ['SUCCEEDED', 2], hangs: ['SUCCEEDED', 2],
};
for (const name of Object.keys(ends)) await send(name, `${name}-1`, name === 'deaf' ? 'x'.repeat(500000) : undefined);
for (const [name, [state, n]] of Object.entries(ends)) {
  const ended = await inState(worker, name, `${name}-1`, state, 20000);
  const lines = attempts(name);
  assert.equal(ended.attempts, n, name);
  assert.deepEqual(lines.map((line) => Number(line.split(' ')[0])), Array.from({ length: n }, (_, i) => i + 1), name);
  assert.ok(lines.every((line) => line.split(' ')[1] === ended.idempotency_key), `${name}: one key`);
}
const shown = (name) => worker.event(name, `${name}-1`);
assert.equal((await shown('good')).result.body, '{"id":"good-1"}done\n');
for (const name of ['exit64', 'exit65', 'exit78']) {
  const dead = await shown(name);
  assert.equal(dead.reason, 'refused', name);
  assert.equal(dead.code, name.slice(4), 'the exit status is the code');
}
for (const name of ['exit1', 'exit255', 'exit79', 'killed', 'aborted', 'ignores', 'hangs']) {
  assert.ok((await shown(name)).history.some((row) => row.what === 'uncertain'), `${name} was uncertain`);
}
assert.deepEqual((await shown('exit75')).history.filter((row) => row.what === 'retry').length, 2);
assert.equal((await shown('stdout')).result.body_omitted, true, '10 MiB of output are dropped');
assert.equal(await metric(worker, 'onced_attempts_total{route="exit75",result="transient"}'), 2);

// What a program leaves in its group ends with it; what left the group is
// not waited for.
await until('what was left behind to end', () => !isAlive(Number(read('background.pid'))) && !isAlive(Number(read('ignores.pid'))));
const log = worker.log();
const logged = log.trimEnd().split('\n').map((line) => JSON.parse(line));
const from = (name) => logged.filter((line) => line.route === name && line.part !== 'engine').map((line) => JSON.stringify(line)).join('\n');
assert.match(from('exit65'), /no such account/, 'standard error is in the log');
assert.ok(logged.filter((line) => line.route === 'stderr').length < 80, 'a flood of it is cut');
for (const part of ['red', 'quote', 'no end']) assert.ok(from('noise').includes(part), `${part}: ${from('noise')}`);
assert.doesNotMatch(log.replaceAll('\n', ''), /[\x00-\x1f\x7f]/, 'nothing of it is a control byte');
assert.ok(logged.every((line) => line.msg !== 'forged'));
assert.ok(log.length < 400000, `${log.length} bytes of log`);
const daemon = Number(read('daemon.pid'));
if (isAlive(daemon)) process.kill(daemon, 'SIGKILL');

assert.equal(await worker.stop(), 0);
assert.equal((await worker.command('verify-store')).code, 0);
console.log(`${Object.keys(programs).length} programs ended as the table says; environment, input and descriptors are exact`);
