// SPDX-License-Identifier: MIT
// The listener over TLS with client certificates: only those of the
// configured authority are served.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { once } from 'node:events';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, until } from './lib.mjs';
import { run } from './support/fault.mjs';

const folder = makeFolder('tls');
const file = (name) => path.join(folder, name);
const pem = (name) => fs.readFileSync(file(name));
const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' });

// --- two authorities, a server, clients ----------------------------------------------------------

const newKey = (name) => ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', `${name}.key`];
const authority = (name) => openssl('req', '-x509', ...newKey(name), '-out', `${name}.pem`, '-days', '2', '-subj', `/CN=${name}`);
const issue = (name, by, use, days = '2') => {
  openssl('req', ...newKey(name), '-out', `${name}.csr`, '-subj', `/CN=${name}`);
  fs.writeFileSync(file(`${name}.ext`), `basicConstraints=CA:FALSE\nsubjectAltName=IP:127.0.0.1\nextendedKeyUsage=${use}\n`);
  openssl('x509', '-req', '-in', `${name}.csr`, '-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-CAcreateserial', '-days', days,
    '-extfile', `${name}.ext`, '-out', `${name}.pem`);
};
for (const name of ['ca', 'other-ca']) authority(name);
issue('server', 'ca', 'serverAuth');
issue('client', 'ca', 'clientAuth');
issue('stranger', 'other-ca', 'clientAuth');
issue('expired', 'ca', 'clientAuth', '-1');
for (const name of fs.readdirSync(folder).filter((entry) => entry.endsWith('.key'))) fs.chmodSync(file(name), 0o600);

const handler = await new Handler().listen();
const worker = await new Worker(folder, {
  listen: { request_timeout: '1s', tls: { certificate: 'server.pem', key: 'server.key', client_ca: 'ca.pem' } },
  routes: [githubRoute(handler)],
}).start();

const post = (id, options) => new Promise((resolve, reject) => {
  const body = JSON.stringify({ id });
  const req = https.request({ host: '127.0.0.1', port: worker.port, path: '/github', method: 'POST', agent: false, ca: pem('ca.pem'),
    headers: githubHeaders(id, body), ...options }, (res) => {
    res.resume();
    res.on('end', () => resolve(res.statusCode));
  });
  req.on('error', reject);
  req.end(body);
});
const as = (name) => ({ cert: pem(`${name}.pem`), key: pem(`${name}.key`) });

// --- who is served ----------------------------------------------------------------------------------

for (const maxVersion of ['TLSv1.2', 'TLSv1.3']) {
  const id = `good-${maxVersion}`;
  assert.equal(await post(id, { ...as('client'), maxVersion }), 202);
  await until('it to be handled', () => handler.of(id).length === 1);
  const refused = { 'no certificate': {}, 'another authority': as('stranger'), 'an expired one': as('expired') };
  for (const [what, options] of Object.entries(refused)) {
    const status = await post('bad', { ...options, maxVersion }).catch((error) => error);
    assert.ok(status instanceof Error || status === 403, `${what}, ${maxVersion}: ${status}`);
  }
}
await assert.rejects(post('bad', { ...as('client'), ca: pem('other-ca.pem') }), 'the server shows its own certificate');
for (const maxVersion of ['TLSv1', 'TLSv1.1']) {
  await assert.rejects(post('bad', { ...as('client'), minVersion: 'TLSv1', maxVersion, ciphers: 'DEFAULT@SECLEVEL=0' }), maxVersion);
}

// Plain HTTP, garbage, and nobody who speaks at all.
const plain = async (bytes) => {
  const socket = net.connect(worker.port, '127.0.0.1');
  const parts = [];
  socket.on('error', () => {});
  socket.on('data', (part) => parts.push(part));
  if (bytes !== null) socket.write(bytes);
  await once(socket, 'close').catch(() => {});
  return Buffer.concat(parts).toString('latin1');
};
assert.doesNotMatch(await plain('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), /HTTP\/1\.1 [23]/);
await plain(Buffer.alloc(4096, 0x16));
const silent = plain(null);

// The good one is still served beside it, and over one connection twice.
const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: pem('ca.pem'), ...as('client') });
for (const id of ['again-1', 'again-2']) assert.equal(await post(id, { agent }), 202);
agent.destroy();
await silent;
const socket = tls.connect({ host: '127.0.0.1', port: worker.port, ca: pem('ca.pem'), ...as('client') });
await once(socket, 'secureConnect');
assert.ok(['TLSv1.2', 'TLSv1.3'].includes(socket.getProtocol()));
socket.destroy();

await worker.settled('github');
assert.equal(handler.of('bad').length, 0);
assert.equal((await worker.counts('github')).succeeded, 4);
assert.equal((await worker.admin('/v1/events/github/bad')).status, 404);
assert.equal(await worker.stop(), 0);

// --- what cannot be used -----------------------------------------------------------------------------

const attempt = async (changes) => {
  const config = JSON.parse(fs.readFileSync(worker.file, 'utf8'));
  Object.assign(config.listen.tls, changes);
  fs.writeFileSync(file('bad.json'), JSON.stringify(config));
  return run(['run', '-c', file('bad.json')]);
};
fs.writeFileSync(file('garbage.pem'), 'no certificate\n', { mode: 0o600 });
const bad = {
  'a certificate that is none': { certificate: 'garbage.pem' },
  'a key that is none': { key: 'garbage.pem' },
  'the key of another': { key: 'client.key' },
  'an authority that is none': { client_ca: 'garbage.pem' },
  'no such file': { certificate: 'nowhere.pem' },
};
for (const [what, changes] of Object.entries(bad)) {
  const { code, err } = await attempt(changes);
  assert.equal(code, 78, `${what}: ${code} ${err}`);
  assert.doesNotMatch(err, /PRIVATE KEY/);
}
fs.chmodSync(file('server.key'), 0o644);
assert.equal((await attempt({})).code, 78, 'a key that everybody may read');
await handler.close();
console.log('TLS: only clients of the authority are served; what cannot be used keeps the worker from starting');
