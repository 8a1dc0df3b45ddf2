// SPDX-License-Identifier: MIT
// Deliveries that are not to be believed or not to be understood: each gets
// its own refusal, nothing is stored, nothing is handled.

import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, request } from './lib.mjs';
import { metric, raw } from './support/fault.mjs';

const handler = await new Handler().listen();
const http = { url: `http://127.0.0.1:${handler.port}/hook` };
const worker = await new Worker(makeFolder('badinput'), {
  listen: { max_body: '128KiB', request_timeout: '2s' },
  routes: [
    githubRoute(handler),
    { name: 'json', source: { http: { path: '/json' } }, verify: 'none', id: ['json:/id'], handler: { http } },
    { name: 'header', source: { http: { path: '/header' } }, verify: 'none', id: ['header:X-Id'], handler: { http } },
    { name: 'tenants', source: { http: { path: '/tenants', methods: ['POST', 'PUT'] } }, verify: 'none',
      id: ['json:/id'], tenant: 'header:X-Account', handler: { http } },
    { name: 'inside', source: { http: { path: '/inside', allow: ['192.0.2.0/24'] } }, verify: 'none', id: ['json:/id'], handler: { http } },
    { name: 'deep', source: { http: { path: '/deep' } }, verify: 'none', id: ['json:/event/data/id'], handler: { http } },
  ],
}).start();

const remembered = async () => (await worker.json('/v1/status')).store.remembered;

// Sends; expects the status, a problem that says so, and no trace.
async function refused(what, status, target, headers, body) {
  const before = await remembered();
  const answer = await worker.post(target, headers, body);
  assert.equal(answer.status, status, `${what}: ${answer.status} ${answer.body}`);
  assert.equal(answer.headers['content-type'], 'application/problem+json', what);
  assert.equal(answer.headers['idempotency-status'], 'refused', what);
  const problem = JSON.parse(answer.body);
  assert.equal(problem.status, status, what);
  assert.ok(problem.title.length > 0 && problem.detail.length > 0, what);
  assert.equal(await remembered(), before, `${what}: something was stored`);
  return answer;
}

const json = { 'Content-Type': 'application/json' };
const deep = (open, close, n, inside = '') => open.repeat(n) + inside + close.repeat(n);

// --- bodies without a usable id ------------------------------------------------------

const bodies = {
  empty: '',
  'only spaces': ' \n ',
  'not JSON': 'id=1',
  'cut short': '{"id":"evt_1"',
  'cut short in the id': '{"id":"evt_',
  'text behind the end': '{"id":"evt_1"} x',
  'two documents': '{"id":"evt_1"}{"id":"evt_2"}',
  'single quotes': "{'id':'evt_1'}",
  'a comment': '{"id":"evt_1" /* */}',
  'a comma at the end': '{"id":"evt_1",}',
  'UTF-16': Buffer.from('{"id":"evt_1"}', 'utf16le'),
  'an array': '["id","evt_1"]',
  'a string': '"id"',
  missing: '{"ID":"evt_1"}',
  null: '{"id":null}',
  'empty id': '{"id":""}',
  'an object as id': '{"id":{"id":"x"}}',
  'an array as id': '{"id":["x"]}',
  '256 bytes': JSON.stringify({ id: 'x'.repeat(256) }),
  '128 characters of 2 bytes': JSON.stringify({ id: 'é'.repeat(128) }),
  'escaped control byte': '{"id":"a\\u0007b"}',
  'escaped NUL': '{"id":"a\\u0000b"}',
  'escaped newline': '{"id":"a\\nb"}',
  'raw control byte': '{"id":"a\u0007b"}',
  DEL: '{"id":"a\u007fb"}',
  'invalid UTF-8': Buffer.from([...Buffer.from('{"id":"a'), 0xff, 0xfe, ...Buffer.from('"}')]),
  'overlong UTF-8': Buffer.from([...Buffer.from('{"id":"a'), 0xc0, 0xaf, ...Buffer.from('"}')]),
  'surrogate in UTF-8': Buffer.from([...Buffer.from('{"id":"a'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
  'lone surrogate': '{"id":"a\\ud800b"}',
  'bad escape': '{"id":"a\\xb"}',
  'invalid UTF-8 elsewhere': Buffer.from([...Buffer.from('{"x":"'), 0xff, ...Buffer.from('","id":"evt_1"}')]),
  'the id twice': '{"id":"evt_1","id":"evt_2"}',
  'the id twice, the same': '{"id":"evt_1","id":"evt_1"}',
  'the id twice, once escaped': '{"id":"evt_1","\\u0069d":"evt_2"}',
  '10,000 arrays before the id': `{"x":${deep('[', ']', 10000)},"id":"evt_1"}`,
  '10,000 arrays behind the id': `{"id":"evt_1","x":${deep('[', ']', 10000)}}`,
  '10,000 objects': deep('{"id":', '}', 10000, '"evt_1"'),
  '10,000 brackets, never closed': '['.repeat(10000),
};
for (const [what, body] of Object.entries(bodies)) await refused(what, 400, '/json', json, body);

await refused('the way to the id twice', 400, '/deep', json,
  '{"event":{"data":{"id":"evt_1"}},"event":{"data":{"id":"evt_2"}}}');
await refused('a part of the way twice', 400, '/deep', json,
  '{"event":{"data":{"id":"evt_1"},"data":{"id":"evt_2"}}}');

// Just within the limits.
const fine = {
  '255 bytes': ['x'.repeat(255), JSON.stringify({ id: 'x'.repeat(255) })],
  'a large number': ['12345678901234567890', '{"id":12345678901234567890}'],
  'é': ['é/%', '{"id":"\\u00e9/%"}'],
  spaces: ['sp', ' { "id" : "sp" } \n'],
};
for (const [what, [id, body]] of Object.entries(fine)) {
  const { status, body: said } = await worker.post('/json', json, body);
  assert.equal(status, 202, `${what}: ${said}`);
  assert.equal((await worker.event('json', id)).id, id, what);
}
await worker.settled('json');
assert.equal(handler.invocations.length, Object.keys(fine).length);
handler.invocations.length = 0;

// --- ids and tenants in headers ---------------------------------------------------------

await refused('no header', 400, '/header', {}, 'x');
await refused('an empty header', 400, '/header', { 'X-Id': '' }, 'x');
await refused('two headers', 400, '/header', { 'X-Id': ['a', 'b'] }, 'x');
await refused('two equal headers', 400, '/header', { 'X-Id': ['a', 'a'] }, 'x');
await refused('a long header', 400, '/header', { 'X-Id': 'x'.repeat(256) }, 'x');
await refused('Latin-1', 400, '/header', { 'X-Id': 'caf\u00e9' }, Buffer.from('x'));
await refused('no tenant', 400, '/tenants', json, '{"id":"evt_1"}');
await refused('an empty tenant', 400, '/tenants', { ...json, 'X-Account': '' }, '{"id":"evt_1"}');
await refused('a long tenant', 400, '/tenants', { ...json, 'X-Account': 'x'.repeat(256) }, '{"id":"evt_1"}');

// --- not signed, or not as it should be ---------------------------------------------------

const body = '{"n":1}';
const good = githubHeaders('g-1', body);
const without = (name) => Object.fromEntries(Object.entries(good).filter(([key]) => key !== name));
const failures = async () => {
  const { body: text } = await worker.admin('/metrics');
  return [...text.toString().matchAll(/^onced_verify_failures_total\{route="github",reason="[^"]+"\} (\d+)$/gm)]
    .reduce((sum, [, n]) => sum + Number(n), 0);
};
const unsigned = [
  ['no signature', without('X-Hub-Signature-256'), body],
  ['an empty signature', { ...good, 'X-Hub-Signature-256': '' }, body],
  ['another body', good, '{"n":2}'],
  ['a byte more', good, `${body} `],
  ['a signature cut short', { ...good, 'X-Hub-Signature-256': good['X-Hub-Signature-256'].slice(0, -1) }, body],
  ['no hex', { ...good, 'X-Hub-Signature-256': `sha256=${'g'.repeat(64)}` }, body],
  ['no prefix', { ...good, 'X-Hub-Signature-256': good['X-Hub-Signature-256'].slice(7) }, body],
  ['SHA-1', { ...without('X-Hub-Signature-256'), 'X-Hub-Signature': 'sha1=0000' }, body],
];
for (const [what, headers, sent] of unsigned) await refused(what, 401, '/github', headers, sent);
assert.equal(await failures(), unsigned.length);
await refused('signed, without an id', 400, '/github', without('X-GitHub-Delivery'), body);

// --- the wrong place, the wrong way ------------------------------------------------------

for (const target of ['/', '/githu', '/github/', '/github/x', '/GitHub', '/metrics', '/healthz', '/v1/status', '/.onced']) {
  await refused(target, 404, target, good, body);
}
for (const [target, allow] of [['/github', ['POST']], ['/tenants', ['POST', 'PUT']]]) {
  for (const method of ['GET', 'DELETE', 'PATCH']) {
    const answer = await request({ host: '127.0.0.1', port: worker.port, path: target, method });
    assert.equal(answer.status, 405, `${method} ${target}`);
    assert.deepEqual(answer.headers.allow.split(/, */).sort(), allow);
  }
}

await refused('from another network', 403, '/inside', json, '{"id":"evt_1"}');
await refused('with a header that a proxy would set', 403, '/inside', { ...json, 'X-Forwarded-For': '192.0.2.1' }, '{"id":"evt_1"}');

// --- too many headers, too long a target --------------------------------------------------

const many = Object.fromEntries(Array.from({ length: 120 }, (_, i) => [`X-${i}`, 'x']));
await refused('120 headers', 431, '/github', { ...good, ...many }, body);
await refused('a target of 9 KiB', 414, `/github?${'x'.repeat(9 * 1024)}`, good, body);
for (const head of [`X: ${'x'.repeat(1 << 20)}`, 'X: y\r\n'.repeat(100000), 'x'.repeat(1 << 20)]) {
  const [flooded] = await raw(worker.port, `POST /github HTTP/1.1\r\nHost: x\r\n${head}\r\n\r\n`);
  assert.ok(flooded === undefined || [400, 413, 414, 431].includes(flooded.status), `${flooded?.status}`);
}

// --- too large ------------------------------------------------------------------------------

const large = 'x'.repeat(128 * 1024 + 1);
await refused('too large, by Content-Length', 413, '/github', githubHeaders('g-2', large), large);
await refused('too large, chunked', 413, '/github',
  { ...githubHeaders('g-2', large), 'Transfer-Encoding': 'chunked' }, large);
const [expects] = await raw(worker.port,
  `POST /github HTTP/1.1\r\nHost: x\r\nContent-Length: 140000\r\nExpect: 100-continue\r\n\r\n`);
assert.equal(expects.status, 413);
assert.ok(expects.closes, 'the body that was announced is not waited for');
const [huge] = await raw(worker.port, 'POST /github HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000000\r\n\r\n');
assert.equal(huge.status, 413);
const awaited = '{"x":1}';
const [went] = await raw(worker.port, ['POST /github HTTP/1.1', 'Host: x', `Content-Length: ${awaited.length}`, 'Expect: 100-continue',
  ...Object.entries(githubHeaders('g-expect', awaited)).map(([name, value]) => `${name}: ${value}`), '', awaited].join('\r\n'));
assert.equal(went.status, 202);
const most = JSON.stringify({ x: 'x'.repeat(128 * 1024 - 8) });
assert.equal(most.length, 128 * 1024);
assert.equal((await worker.post('/github', githubHeaders('g-most', most), most)).status, 202);

// --- codings ---------------------------------------------------------------------------------

const text = JSON.stringify({ text: 'onced '.repeat(100) });
const packed = zlib.gzipSync(text);
assert.equal((await worker.post('/github', { ...githubHeaders('g-gzip', packed), 'Content-Encoding': 'gzip' }, packed)).status, 202);
await worker.settled('github');
const [inflated] = handler.of('g-gzip');
assert.equal(inflated.body.toString(), text);
assert.equal(inflated.headers['content-encoding'], undefined);
assert.equal(inflated.headers['content-length'], String(text.length));
assert.equal(handler.of('g-most')[0].body.toString(), most);

const gzip = (id, sent) => [{ ...githubHeaders(id, sent), 'Content-Encoding': 'gzip' }, sent];
const bomb = zlib.gzipSync(Buffer.alloc(50 * 1024 * 1024));
assert.ok(bomb.length < 128 * 1024);
await refused('a bomb', 413, '/github', ...gzip('g-bomb', bomb));
await refused('not gzip', 400, '/github', ...gzip('g-bad', Buffer.from('not gzip')));
await refused('gzip cut short', 400, '/github', ...gzip('g-bad', packed.subarray(0, -9)));
await refused('bytes behind the end', 400, '/github', ...gzip('g-bad', Buffer.concat([packed, Buffer.from('x')])));
await refused('signed after inflating', 401, '/github',
  { ...githubHeaders('g-bad', text), 'Content-Encoding': 'gzip' }, packed);
for (const coding of ['br', 'deflate', 'gzip, gzip', 'zstd', 'compress']) {
  await refused(coding, 415, '/github', { ...githubHeaders('g-br', body), 'Content-Encoding': coding }, body);
}

// --- a header that is ours -------------------------------------------------------------------

const spoof = { 'Idempotency-Key': 'theirs', 'Onced-Event-Id': 'theirs', 'Onced-Attempt': '99', 'Onced-Route': 'theirs' };
assert.equal((await worker.post('/github', { ...githubHeaders('g-spoof', body), ...spoof }, body)).status, 202);
await worker.settled('github');
const [spoofed] = handler.of('g-spoof');
assert.equal(spoofed.attempt, 1);
assert.equal(spoofed.headers['onced-route'], 'github');
assert.equal(spoofed.key, (await worker.event('github', 'g-spoof')).idempotency_key);
assert.equal(handler.of('theirs').length, 0);

assert.deepEqual(handler.invocations.map((i) => i.id).sort(), ['g-expect', 'g-gzip', 'g-most', 'g-spoof']);
assert.equal(await metric(worker, 'onced_deliveries_total{route="github",outcome="unauthorized"}'), unsigned.length + 1);
assert.equal(await worker.stop(), 0);
await handler.close();
console.log(`${Object.keys(bodies).length + 2} bodies without a usable id and ${unsigned.length} bad signatures refused, nothing stored`);
