// SPDX-License-Identifier: MIT
// A handler over HTTP that misbehaves: not there, hanging, flooding, closing
// early, speaking something else. Every event ends as the table of outcomes
// says, under one idempotency key, and none is lost.

import assert from 'node:assert/strict';
import net from 'node:net';
import { once } from 'node:events';
import { Handler, Worker, freePort, githubHeaders, githubRoute, makeFolder, parallel, until } from './lib.mjs';
import { inState, metric } from './support/fault.mjs';

// --- a handler on raw sockets ----------------------------------------------------------------
//
// Whole answers leave the connection open: one that closes behind them
// without a word may close under the next request, which is then in doubt.
// The kind of an event is its id up to the last '-'. The first attempt goes
// wrong as the kind says; the second is answered 200.

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const large = 100 * 1024 * 1024;
const flood = (socket, left, part = Buffer.alloc(1 << 20, 'x')) => {
  while (left > 0 && !socket.destroyed) {
    left -= part.length;
    if (!socket.write(part)) return socket.once('drain', () => flood(socket, left));
  }
  return undefined;
};
const kinds = {
  'hangs': () => {},
  'hangs-in-head': (s) => s.write('HTTP/1.1 200 OK\r\nContent-'),
  'hangs-in-body': (s) => s.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345'),
  'closes-at-once': (s) => s.destroy(),
  'ends-at-once': (s) => s.end(),
  'closes-in-head': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Le'),
  'closes-in-body': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345'),
  'closes-in-chunk': (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345'),
  'resets': (s) => s.resetAndDestroy(),
  'garbage': (s) => s.end('\x00\x01\x02 what is this \xff\r\n\r\n'),
  'ssh': (s) => s.end('SSH-2.0-OpenSSH_9.2\r\n'),
  'http09': (s) => s.end('<html>done</html>'),
  'bad-status': (s) => s.end('HTTP/1.1 999999 No\r\nContent-Length: 0\r\n\r\n'),
  'status-000': (s) => s.end('HTTP/1.1 000 No\r\nContent-Length: 0\r\n\r\n'),
  'bad-length': (s) => s.end('HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nok'),
  'bad-chunk': (s) => s.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n'),
  'only-100': (s) => s.end('HTTP/1.1 100 Continue\r\n\r\n'),
  'only-103': (s) => s.end('HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n'),
  '101': (s) => s.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n'),
  'endless-headers': (s) => { s.write('HTTP/1.1 200 OK\r\n'); flood(s, large, Buffer.from(`X: ${'x'.repeat(1000)}\r\n`)); },
  'long-header': (s) => { s.write('HTTP/1.1 200 OK\r\nX: '); flood(s, large); },
  'endless-100': (s) => flood(s, large, Buffer.from('HTTP/1.1 100 Continue\r\n\r\n'.repeat(100))),
  'redirect': (s) => s.write('HTTP/1.1 307 Again\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n'),
  '500': (s) => s.write('HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n'),
  '503': (s) => s.write('HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n'),
};
// These are answers: one attempt, and what follows.
const final = {
  'ok': [(s) => s.write(ok), 'SUCCEEDED'],
  'ok-after-100': [(s) => s.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${ok}`), 'SUCCEEDED'],
  'ok-until-close': [(s) => s.end('HTTP/1.0 200 OK\r\n\r\nok'), 'SUCCEEDED'],
  'no-content': [(s) => s.write('HTTP/1.1 204 No Content\r\n\r\n'), 'SUCCEEDED'],
  'large': [(s) => { s.write(`HTTP/1.1 200 OK\r\nContent-Length: ${large}\r\n\r\n`); flood(s, large); }, 'SUCCEEDED'],
  '404': [(s) => s.write('HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n'), 'DEAD'],
  '422': [(s) => s.write('HTTP/1.1 422 No\r\nOnced-Code: card-declined\r\nContent-Length: 0\r\n\r\n'), 'DEAD'],
};

const requests = [];
const server = net.createServer((socket) => {
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (part) => {
    text += part.toString('latin1');
    const end = text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const header = (name) => new RegExp(`^${name}: *(.*)$`, 'im').exec(text.slice(0, end).replaceAll('\r', ''))?.[1];
    if (text.length < end + 4 + Number(header('content-length'))) return;
    const request = { id: header('onced-event-id'), key: header('idempotency-key'), attempt: Number(header('onced-attempt')),
      line: text.split('\r\n', 1)[0], body: text.slice(end + 4) };
    text = '';
    requests.push(request);
    const kind = request.id.replace(/-\d+$/, '');
    if (kind in final) final[kind][0](socket);
    else if (request.attempt > 1) socket.write(ok);
    else kinds[kind](socket);
  });
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();

const goneport = await freePort();
const http = (at, more) => ({ http: { url: `http://127.0.0.1:${at}/hook`, timeout: '700ms', concurrency: 64, ...more } });
const route = (name, handler, more) => githubRoute({ port: 0 }, { name, source: { http: { path: `/${name}` } }, handler,
  retry: { backoff: '20ms', max_backoff: '100ms' }, ...more });
const worker = await new Worker(makeFolder('faults'), {
  routes: [route('faults', http(port)), route('held', http(port), { on_uncertain: 'hold' }), route('final', http(port, { timeout: '20s' })),
    route('gone', http(goneport))],
}).start();
const send = async (name, id) => {
  const body = JSON.stringify({ id });
  const { status, body: said } = await worker.post(`/${name}`, githubHeaders(id, body), body);
  assert.equal(status, 202, `${name} ${id}: ${said}`);
};
const of = (id) => requests.filter((request) => request.id === id);

// --- what went wrong after sending is uncertain: again, under the same key ------------------------

await parallel(16, Object.keys(kinds).map((kind) => () => send('faults', `${kind}-1`)));
const counts = await worker.settled('faults', 30000);
assert.equal(counts.succeeded, Object.keys(kinds).length);
for (const kind of Object.keys(kinds)) {
  const sent = of(`${kind}-1`);
  assert.deepEqual(sent.map((request) => request.attempt), [1, 2], `${kind}: ${JSON.stringify(sent)}`);
  assert.equal(sent[0].key, sent[1].key, kind);
  assert.equal(sent[0].body, sent[1].body, kind);
  const event = await worker.event('faults', `${kind}-1`);
  assert.equal(event.attempts, 2, kind);
  assert.ok(event.history.some((row) => row.what === 'uncertain'), `${kind}: ${JSON.stringify(event.history)}`);
}
assert.equal(await metric(worker, 'onced_attempts_total{route="faults",result="unknown"}'), Object.keys(kinds).length);
assert.equal(await metric(worker, 'onced_attempts_total{route="faults",result="success"}'), Object.keys(kinds).length);

await parallel(16, Object.keys(kinds).map((kind) => () => send('held', `${kind}-2`)));
assert.equal((await worker.settled('held', 30000)).dead, Object.keys(kinds).length, 'held for a person');
for (const kind of Object.keys(kinds)) {
  assert.equal(of(`${kind}-2`).length, 1, kind);
  assert.equal((await worker.event('held', `${kind}-2`)).reason, 'uncertain', kind);
}
assert.ok(requests.every((request) => request.line === 'POST /hook HTTP/1.1'), 'no redirect is followed');

// --- answers ------------------------------------------------------------------------------------

await parallel(16, Object.keys(final).map((kind) => () => send('final', `${kind}-3`)));
await worker.settled('final', 30000);
for (const [kind, [, state]] of Object.entries(final)) {
  const event = await worker.event('final', `${kind}-3`);
  assert.equal(event.state, state, kind);
  assert.equal(of(`${kind}-3`).length, 1, kind);
}
const flooded = await worker.event('final', 'large-3');
assert.equal(flooded.result.status, 200);
assert.equal(flooded.result.body_omitted, true);
assert.equal((await worker.event('final', 'ok-until-close-3')).result.body, 'ok');
assert.equal((await worker.event('final', '404-3')).reason, 'refused');
assert.equal((await worker.event('final', '422-3')).code, 'card-declined');

// --- not there at all: the breaker opens, everything waits, nothing is dead -------------------------

const waiting = Array.from({ length: 60 }, (_, i) => `wait-${i}`);
await parallel(16, waiting.map((id) => () => send('gone', id)));
await until('the breaker to open', async () => (await metric(worker, 'onced_breaker_open{route="gone"}')) === 1);
assert.equal((await worker.admin('/readyz')).status, 200, 'ready: deliveries are still taken');
const gone = await worker.counts('gone');
assert.equal(gone.dead + gone.succeeded + gone.failed, 0);
assert.equal(gone.pending + gone.running, waiting.length);
await send('gone', 'wait-last');
const cured = await new Handler().listen(goneport);
assert.equal((await worker.settled('gone', 30000)).succeeded, waiting.length + 1);
assert.equal(await metric(worker, 'onced_breaker_open{route="gone"}'), 0);
for (const id of [...waiting, 'wait-last']) assert.equal(cured.of(id).length, 1, id);
await cured.close();

// Down again, and the worker restarted meanwhile: still nothing is lost.
await send('gone', 'later-1');
await until('an attempt', async () => (await worker.event('gone', 'later-1')).attempts > 0);
assert.equal(await worker.stop(), 0);
await worker.start();
const again = await new Handler().listen(goneport);
await inState(worker, 'gone', 'later-1', 'SUCCEEDED', 30000);
assert.equal(again.of('later-1').length, 1);
await again.close();

assert.equal(await worker.stop(), 0);
assert.equal((await worker.command('verify-store')).code, 0);
server.close();
console.log(`${Object.keys(kinds).length} faults of an HTTP handler: each retried once under its key, or held; none lost while it was away`);
process.exit(0);
