// SPDX-License-Identifier: MIT
// What keeps a worker from starting: each has its exit status and one line
// that names the cause, and no secret is ever among what is printed.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { once } from 'node:events';
import { Handler, Worker, freePort, githubHeaders, githubRoute, githubSecret, makeFolder } from './lib.mjs';
import { command, run, script } from './support/fault.mjs';

const folder = makeFolder('config');
const handler = await new Handler().listen();
const canary = 'whsec_canary0123456789';
let outputs = '';

// Writes the configuration and runs a command on it.
async function attempt(config, name = 'check', args = [], env = {}) {
  const file = path.join(folder, 'onced.json');
  fs.writeFileSync(file, typeof config === 'string' ? config : JSON.stringify(config));
  const ran = await run([name, '-c', file, ...args], { env: { ...process.env, ...env } });
  outputs += ran.out + ran.err;
  return ran;
}

const routes = (more) => [githubRoute(handler, more)];
const places = async () => ({
  store: { path: 'store' },
  listen: { address: `127.0.0.1:${await freePort()}` },
  admin: { socket: 'admin.sock' },
});
const lastLine = (text) => text.trimEnd().split('\n').at(-1);

// --- all errors at once ------------------------------------------------------------------

const wrong = {
  store: { path: 'store', max_size: '1KiB', retention: 'soon' },
  listen: { address: ['127.0.0.1:99999'], colour: 'red' },
  log: { level: 'loud' },
  routes: [
    { name: 'a b', source: { http: { path: 'no-slash' } }, verify: { scheme: 'github', secrets: [{ value: canary, file: 'x' }] },
      id: ['header:'], handler: { http: { url: 'ftp://x', timeout: '-1s' } } },
    { name: 'twice', source: { http: { path: '/t' } }, id: ['json:/id'], handler: { noop: {} } },
    { name: 'twice', source: { http: { path: '/u' } }, verify: 'none', id: ['json:/id'], handler: { noop: {}, exec: { command: ['true'] } } },
    { name: 'secret', source: { http: { path: '/v' } }, verify: { scheme: 'github', secrets: [{ env: 'ONCED_TEST_UNSET' }] }, handler: { noop: {} } },
  ],
};
const pointers = ['/store/max_size', '/store/retention', '/listen/address/0', '/listen/colour', '/log/level', '/routes/0/name',
  '/routes/0/source/http/path', '/routes/0/verify/secrets/0', '/routes/0/id/0', '/routes/0/handler/http/url',
  '/routes/0/handler/http/timeout', '/routes/1/verify', '/routes/2/name', '/routes/2/handler', '/routes/3/verify/secrets/0'];
for (const name of ['check', 'run']) {
  const { code, out, err } = await attempt(wrong, name);
  assert.equal(code, 78, name);
  assert.equal(out, '', 'what is wrong goes to stderr');
  const at = err.split('\n').map((line) => line.replace('onced: ', '').split(': ')[0]);
  for (const pointer of pointers) assert.ok(at.some((line) => line === pointer || line.startsWith(`${pointer}/`)), `${pointer} is not among ${err}`);
}
const told = await attempt(wrong, 'check', ['--json']);
assert.equal(told.code, 78);
const report = JSON.parse(told.out);
assert.equal(report.ok, false);
assert.ok(report.problems.length >= pointers.length);

const syntax = await attempt(`{ "routes": [ { "verify": { "secrets": [ "${canary}" "${canary}" ] } } ] }`);
assert.equal(syntax.code, 78);
assert.match(syntax.err, /onced\.json:1:\d+: /);
assert.equal((await attempt('{ "log": { "level": "info", "level": "warn" }, "routes": [] }')).code, 78);

// --- files ----------------------------------------------------------------------------------

assert.equal((await run(['run', '-c', path.join(folder, 'nowhere.json')])).code, 66);
assert.equal((await run(['check', '-c', path.join(folder, 'nowhere.json')])).code, 66);
assert.equal((await run(['run'], { cwd: folder, env: { ...process.env, ONCED_CONFIG: 'nowhere.json' } })).code, 66);
assert.equal((await run(['frobnicate'])).code, 64);
assert.equal((await run([])).code, 64);
assert.equal((await run(['run', '--frobnicate'])).code, 64);

const secret = path.join(folder, 'secret');
const bySecretFile = async () => ({ ...await places(), routes: routes({ verify: { scheme: 'github', secrets: [{ file: 'secret' }] } }) });
const missing = await attempt(await bySecretFile(), 'run');
assert.equal(missing.code, 78);
assert.match(missing.err, /^onced: \/routes\/0\/verify\/secrets\/0.*secret/m);
fs.writeFileSync(secret, `${canary}\n`);
fs.chmodSync(secret, 0o644);
const world = await attempt(await bySecretFile(), 'run');
assert.equal(world.code, 78, 'readable by everybody');
assert.match(world.err, /0644/);
fs.chmodSync(secret, 0o640);
const group = await attempt(await bySecretFile());
assert.equal(group.code, 0, 'readable by the group');
assert.match(group.err, /^onced: warning: \/routes\/0\/verify\/secrets\/0.*group/m);
fs.chmodSync(secret, 0o600);
const fine = await attempt(await bySecretFile());
assert.equal(fine.code, 0);
assert.equal(fine.err, '');
fs.rmSync(secret);
fs.mkdirSync(secret);
assert.equal((await attempt(await bySecretFile(), 'run')).code, 78, 'a folder is no secret');
fs.rmdirSync(secret);
fs.writeFileSync(secret, '', { mode: 0o600 });
assert.equal((await attempt(await bySecretFile(), 'run')).code, 78, 'an empty secret');
fs.writeFileSync(secret, canary, { mode: 0o600 });
if (process.getuid() !== 0) {
  fs.chmodSync(secret, 0o000);
  assert.equal((await attempt(await bySecretFile(), 'run')).code, 78, 'not readable');
  fs.chmodSync(secret, 0o600);
}

const effective = await attempt({ ...await bySecretFile(), routes: routes({ verify: { scheme: 'github', secrets: [{ value: canary }, { env: 'ONCED_TEST' }] },
  handler: { http: { url: 'http://127.0.0.1:1/', headers: { Authorization: { env: 'ONCED_TEST' } } } } }) },
  'check', ['--effective'], { ONCED_TEST: `${canary}-env` });
assert.equal(effective.code, 0, effective.err);
assert.match(effective.out, /\*\*\*/);

// --- what somebody else has -----------------------------------------------------------------

const taken = net.createServer().listen(0, '127.0.0.1');
await once(taken, 'listening');
const address = `127.0.0.1:${taken.address().port}`;
for (const place of ['listen', 'admin']) {
  const config = { ...await places(), routes: routes() };
  config[place].address = address;
  if (place === 'admin') config.admin.tokens = [{ name: 'ops', value: 'tok_0123456789abcdef' }];
  const { code, err } = await attempt(config, 'run');
  assert.equal(code, 75, `${place}: ${err}`);
  assert.match(lastLine(err), /^onced: .*in use/, place);
  assert.ok(lastLine(err).includes(address), `${place}: ${err}`);
}
taken.close();
const privileged = await attempt({ ...await places(), listen: { address: '192.0.2.1:8080' }, routes: routes() }, 'run');
assert.ok([74, 75, 78].includes(privileged.code), `an address of another machine: ${privileged.code}`);
assert.match(lastLine(privileged.err), /^onced: .*192\.0\.2\.1:8080/);

const home = path.join(folder, 'first');
fs.mkdirSync(home);
const worker = await new Worker(home, { routes: routes() }).start();
const second = await attempt({ ...await places(), store: { path: 'first/store' }, routes: routes() }, 'run');
assert.equal(second.code, 75);
assert.match(lastLine(second.err), /^onced: .*store/);
assert.match(lastLine(second.err), /lock|in use|another|process/);
assert.equal((await command(worker, 'verify-store')).code, 75, 'a store in use');
const sameSocket = await attempt({ ...await places(), store: { path: 'other' }, admin: { socket: 'first/admin.sock' }, routes: routes() }, 'run');
assert.equal(sameSocket.code, 75, `an admin socket in use: ${sameSocket.err}`);
assert.equal((await worker.admin('/readyz')).status, 200, 'the first worker still has its socket');
assert.equal(await worker.stop(), 0);

// --- a store that is none ----------------------------------------------------------------------

const data = path.join(home, 'store/data.mdb');
const good = fs.readFileSync(data);
const bad = {
  garbage: Buffer.from('this is no store\n'.repeat(4096)),
  empty: Buffer.alloc(0),
  'cut short': good.subarray(0, 5000),
  zeros: Buffer.alloc(good.length),
};
for (const [what, bytes] of Object.entries(bad)) {
  fs.writeFileSync(data, bytes);
  for (const name of ['run', 'verify-store', 'events']) {
    const { code, err } = await command(worker, name);
    assert.equal(code, 65, `${what}: ${name} ended with ${code}: ${err}`);
    assert.match(lastLine(err), /^onced: .*store/, `${what}: ${name}`);
  }
  assert.ok(fs.readFileSync(data).equals(bytes), `${what}: it was written to`);
}
fs.writeFileSync(data, good);
assert.equal((await command(worker, 'verify-store')).code, 0);

fs.writeFileSync(path.join(folder, 'file'), 'x');
const onFile = await attempt({ ...await places(), store: { path: 'file' }, routes: routes() }, 'run');
assert.ok([65, 74].includes(onFile.code), `a file in place of the store's folder: ${onFile.code}`);
assert.match(lastLine(onFile.err), /^onced: .*file/);

const noStore = await attempt({ ...await places(), store: { path: 'none' }, routes: routes() }, 'verify-store');
assert.equal(noStore.code, 65, 'no store');
assert.ok(!fs.existsSync(path.join(folder, 'none')), 'looking makes nothing');

// --- a route that is gone with its events ------------------------------------------------------

await worker.start();
assert.equal((await worker.admin('/v1/routes/github/pause', 'POST')).status, 200);
assert.equal((await worker.post('/github', githubHeaders('left', '{}'), '{}')).status, 202);
assert.equal(await worker.stop(), 0);
const renamed = { store: { path: 'first/store' }, routes: routes({ name: 'renamed' }) };
const left = await attempt({ ...await places(), ...renamed }, 'run');
assert.equal(left.code, 78, left.err);
assert.match(lastLine(left.err), /github.*\b1\b|\b1\b.*github/, 'it names the route and the count');
worker.config.routes = [{ name: 'github', retired: true }, ...renamed.routes];
await worker.start();
assert.equal((await worker.event('github', 'left')).state, 'PENDING');
assert.equal((await command(worker, 'discard', 'github', 'left')).code, 0);
assert.equal(await worker.stop(), 0);
worker.config.routes = renamed.routes;
await worker.start();
assert.equal(await worker.stop(), 0);

// --- a program that is not there ---------------------------------------------------------------

const exec = (command) => ({ routes: [{ name: 'exec', source: { http: { path: '/e' } }, verify: 'none', id: ['json:/id'], handler: { exec: { command } } }] });
for (const missingProgram of [['./not-there'], ['onced-test-not-there']]) {
  const { code, err } = await attempt({ ...await places(), ...exec(missingProgram) }, 'run');
  assert.equal(code, 78, `${missingProgram}: ${err}`);
  assert.match(err, /not-there/);
}
script(folder, 'plain', 'exit 0');
fs.chmodSync(path.join(folder, 'plain'), 0o644);
assert.equal((await attempt({ ...await places(), ...exec(['./plain']) }, 'run')).code, 78, 'not executable');

outputs += worker.log();
assert.ok(!outputs.includes(canary), 'no secret is printed');
assert.ok(!outputs.includes(githubSecret), 'no secret is printed');
await handler.close();
console.log(`${pointers.length} errors told at once; every start that cannot be ends with its status and its cause`);
