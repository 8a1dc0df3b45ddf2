// SPDX-License-Identifier: MIT
// Requests that two readers would read in two ways, sent as raw bytes. Each
// carries a second, well signed request in what one of the readers takes for
// the body. Never are two handled out of one, and never is another value
// handled than the one that was verified.

import assert from 'node:assert/strict';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder } from './lib.mjs';
import { raw } from './support/fault.mjs';

const handler = await new Handler().listen();
const worker = await new Worker(makeFolder('smuggling'), {
  listen: { request_timeout: '500ms' },
  routes: [githubRoute(handler)],
}).start();

const CRLF = '\r\n';
const lines = (headers) => Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
const head = (list, start = 'POST /github HTTP/1.1') => [start, ...list, '', ''].join(CRLF);
const chunks = (...parts) => parts.map((part) => `${part.length.toString(16)}${CRLF}${part}${CRLF}`).join('') + `0${CRLF}${CRLF}`;

// What a vector is made of: its own id and signed body, and a whole second
// request under an id that must never be seen.
function parts(n) {
  const body = JSON.stringify({ n });
  const inner = JSON.stringify({ smuggled: n });
  const signed = githubHeaders(`outer-${n}`, body);
  return {
    id: `outer-${n}`,
    body,
    signed,
    list: ['Host: onced', ...lines(signed)],
    length: `Content-Length: ${body.length}`,
    chunked: 'Transfer-Encoding: chunked',
    smuggled: head(['Host: onced', ...lines(githubHeaders(`inner-${n}`, inner)), `Content-Length: ${inner.length}`]) + inner,
  };
}

// [what, bytes of the parts]: refused by every reading.
const doubtful = [
  // two lengths
  ['Content-Length and chunked', (p) => head([...p.list, p.length, p.chunked]) + chunks(p.body) + p.smuggled],
  ['chunked and Content-Length', (p) => head([...p.list, p.chunked, p.length]) + chunks(p.body) + p.smuggled],
  ['chunked, and a length that hides a request', (p) => head([...p.list, p.chunked, `Content-Length: ${5 + p.smuggled.length}`]) + `0${CRLF}${CRLF}${p.smuggled}`],
  ['two equal lengths', (p) => head([...p.list, p.length, p.length]) + p.body],
  ['two lengths, the first shorter', (p) => head([...p.list, 'Content-Length: 0', p.length]) + p.body],
  ['two lengths, the second shorter', (p) => head([...p.list, p.length, 'Content-Length: 0']) + p.body + p.smuggled],
  ['a list of lengths', (p) => head([...p.list, `${p.length}, ${p.body.length}`]) + p.body],
  ['a length with a sign', (p) => head([...p.list, `Content-Length: +${p.body.length}`]) + p.body],
  ['a negative length', (p) => head([...p.list, 'Content-Length: -1']) + p.body],
  ['a hexadecimal length', (p) => head([...p.list, `Content-Length: 0x${p.body.length.toString(16)}`]) + p.body],
  ['a length and a word', (p) => head([...p.list, `${p.length} bytes`]) + p.body],
  ['a length with a space inside', (p) => head([...p.list, 'Content-Length: 1 0']) + p.body],
  ['a length beyond 64 bits', (p) => head([...p.list, `Content-Length: 1844674407370955161${p.body.length}`]) + p.body],
  ['a length beyond 64 bits by zeros', (p) => head([...p.list, 'Content-Length: 18446744073709551616']) + p.body],
  ['an empty length', (p) => head([...p.list, 'Content-Length:']) + p.body],
  ['a fraction', (p) => head([...p.list, `${p.length}.0`]) + p.body],
  // codings of the transfer
  ['an unknown transfer coding', (p) => head([...p.list, 'Transfer-Encoding: xchunked']) + chunks(p.body)],
  ['chunked, then identity', (p) => head([...p.list, 'Transfer-Encoding: chunked, identity']) + chunks(p.body)],
  ['identity', (p) => head([...p.list, 'Transfer-Encoding: identity', p.length]) + p.body],
  ['gzip, chunked', (p) => head([...p.list, 'Transfer-Encoding: gzip, chunked']) + chunks(p.body)],
  ['chunked twice', (p) => head([...p.list, p.chunked, p.chunked]) + chunks(p.body)],
  ['chunked, chunked', (p) => head([...p.list, 'Transfer-Encoding: chunked, chunked']) + chunks(p.body)],
  ['chunked in quotes', (p) => head([...p.list, 'Transfer-Encoding: "chunked"', p.length]) + p.body],
  ['chunked and a vertical tab', (p) => head([...p.list, 'Transfer-Encoding: chunked\x0b', p.length]) + p.body],
  ['an empty transfer coding', (p) => head([...p.list, 'Transfer-Encoding:', p.length]) + p.body],
  ['chunked in HTTP/1.0', (p) => head([...p.list, p.chunked], 'POST /github HTTP/1.0') + chunks(p.body)],
  ['chunked with a parameter', (p) => head([...p.list, 'Transfer-Encoding: chunked;q=1']) + chunks(p.body)],
  // names
  ['a space before the colon', (p) => head([...p.list, 'Transfer-Encoding : chunked', p.length]) + p.body],
  ['a tab before the colon', (p) => head([...p.list, 'Content-Length\t: 0', p.length]) + p.body],
  ['a space before a name', (p) => head([' Transfer-Encoding: chunked', ...p.list, p.length]) + p.body],
  ['a space inside a name', (p) => head([...p.list, 'Transfer Encoding: chunked', p.length]) + p.body],
  ['a NUL in a name', (p) => head([...p.list, 'Transfer-Encoding\0: chunked', p.length]) + p.body],
  ['an empty name', (p) => head([...p.list, ': x', p.length]) + p.body],
  ['no colon', (p) => head([...p.list, 'chunked', p.length]) + p.body],
  ['a byte above ASCII in a name', (p) => head([...p.list, 'X-\u00e9: 1', p.length]) + p.body],
  ['parentheses in a name', (p) => head([...p.list, 'X(1): 1', p.length]) + p.body],
  // values and line ends
  ['a NUL in a value', (p) => head([...p.list, 'X: a\0b', p.length]) + p.body],
  ['a CR in a value', (p) => head([...p.list, 'X: a\rContent-Length: 0', p.length]) + p.body],
  ['lines that end with LF', (p) => head([...p.list, p.length]).replaceAll('\r\n', '\n') + p.body],
  ['one line that ends with LF', (p) => head([...p.list, `X: y\nContent-Length: 0`, p.length]) + p.body],
  ['lines that end with CR', (p) => head([...p.list, p.length]).replaceAll('\r\n', '\r') + p.body],
  ['an empty line that ends with LF', (p) => [`POST /github HTTP/1.1`, ...p.list, p.length, '\n'].join(CRLF) + p.body],
  ['a folded value', (p) => head([...p.list, 'X: a', '\tb', p.length]) + p.body],
  ['a folded length', (p) => head([...p.list, 'Content-Length: 0', ` ${p.body.length}`]) + p.body],
  ['a folded transfer coding', (p) => head([...p.list, 'Transfer-Encoding:', ' chunked', p.length]) + p.body],
  ['a folded signature', (p) => head([...p.list.slice(0, -1), 'X-Hub-Signature-256:', ` ${p.signed['X-Hub-Signature-256']}`, p.length]) + p.body],
  ['a folded id', (p) => head(['Host: onced', ...lines({ ...p.signed, 'X-GitHub-Delivery': `${p.id}${CRLF} inner` }), p.length]) + p.body],
  // one value, twice
  ['two hosts', (p) => head(['Host: other', ...p.list, p.length]) + p.body],
  ['two equal hosts', (p) => head(['Host: onced', ...p.list, p.length]) + p.body],
  ['no host', (p) => head([...lines(p.signed), p.length]) + p.body],
  ['two signatures, the second good', (p) => head(['X-Hub-Signature-256: sha256=00', ...p.list, p.length]) + p.body],
  ['two signatures, the first good', (p) => head([...p.list, 'X-Hub-Signature-256: sha256=00', p.length]) + p.body],
  ['two equal signatures', (p) => head([...p.list, `X-Hub-Signature-256: ${p.signed['X-Hub-Signature-256']}`, p.length]) + p.body],
  ['two ids', (p) => head([...p.list, `X-GitHub-Delivery: inner-${p.id.slice(6)}`, p.length]) + p.body],
  ['two ids in two cases', (p) => head([`x-github-delivery: inner-${p.id.slice(6)}`, ...p.list, p.length]) + p.body],
  ['two content types', (p) => head([...p.list, 'Content-Type: text/plain', p.length]) + p.body],
  ['two codings', (p) => head([...p.list, 'Content-Encoding: gzip', 'Content-Encoding: identity', p.length]) + p.body],
  ['two expectations', (p) => head([...p.list, 'Expect: 100-continue', 'Expect: 100-continue', p.length]) + p.body],
  ['another expectation', (p) => head([...p.list, 'Expect: 200-ok', p.length]) + p.body],
  // the first line
  ['two spaces before the target', (p) => head([...p.list, p.length], 'POST  /github HTTP/1.1') + p.body],
  ['two spaces behind the target', (p) => head([...p.list, p.length], 'POST /github  HTTP/1.1') + p.body],
  ['a tab', (p) => head([...p.list, p.length], 'POST\t/github\tHTTP/1.1') + p.body],
  ['a space in the target', (p) => head([...p.list, p.length], 'POST /github x HTTP/1.1') + p.body],
  ['no version', (p) => head([...p.list, p.length], 'POST /github') + p.body],
  ['HTTP/0.9', (p) => head([...p.list, p.length], 'POST /github HTTP/0.9') + p.body],
  ['HTTP/1.2', (p) => head([...p.list, p.length], 'POST /github HTTP/1.2') + p.body],
  ['HTTP/2.0', (p) => head([...p.list, p.length], 'POST /github HTTP/2.0') + p.body],
  ['HTTP/01.1', (p) => head([...p.list, p.length], 'POST /github HTTP/01.1') + p.body],
  ['http/1.1', (p) => head([...p.list, p.length], 'POST /github http/1.1') + p.body],
  ['a NUL in the target', (p) => head([...p.list, p.length], 'POST /github\0 HTTP/1.1') + p.body],
  ['an encoded NUL', (p) => head([...p.list, p.length], 'POST /github%00 HTTP/1.1') + p.body],
  ['dots', (p) => head([...p.list, p.length], 'POST /x/../github HTTP/1.1') + p.body],
  ['encoded dots', (p) => head([...p.list, p.length], 'POST /x/%2e%2e/github HTTP/1.1') + p.body],
  ['two slashes', (p) => head([...p.list, p.length], 'POST //github HTTP/1.1') + p.body],
  ['a backslash', (p) => head([...p.list, p.length], 'POST \\github HTTP/1.1') + p.body],
  ['a fragment', (p) => head([...p.list, p.length], 'POST /github#x HTTP/1.1') + p.body],
  ['the method in lower case', (p) => head([...p.list, p.length], 'post /github HTTP/1.1') + p.body],
  ['a request in the body of a GET', (p) => head(['Host: onced', `Content-Length: ${p.smuggled.length}`], 'GET /github HTTP/1.1') + p.smuggled],
  ['a request in the body of an unknown path', (p) => head(['Host: onced', `Content-Length: ${p.smuggled.length}`], 'POST /x HTTP/1.1') + p.smuggled],
  ['CONNECT', (p) => head(['Host: onced'], 'CONNECT onced:80 HTTP/1.1') + p.smuggled],
  // chunks
  ['a chunk size with 0x', (p) => head([...p.list, p.chunked]) + `0x${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['a chunk size with a sign', (p) => head([...p.list, p.chunked]) + `+${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['a negative chunk size', (p) => head([...p.list, p.chunked]) + `-1${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['a space before a chunk size', (p) => head([...p.list, p.chunked]) + ` ${chunks(p.body)}`],
  ['a chunk size beyond 64 bits', (p) => head([...p.list, p.chunked]) + `1000000000000000${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['a chunk size that is empty', (p) => head([...p.list, p.chunked]) + `${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['no line end behind a chunk', (p) => head([...p.list, p.chunked]) + `${p.body.length.toString(16)}${CRLF}${p.body}0${CRLF}${CRLF}`],
  ['two bytes in place of a line end', (p) => head([...p.list, p.chunked]) + `${p.body.length.toString(16)}${CRLF}${p.body}xx0${CRLF}${CRLF}`],
  ['a chunk longer than its size', (p) => head([...p.list, p.chunked]) + `1${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['a signature in the trailer', (p) => head(['Host: onced', `X-GitHub-Delivery: ${p.id}`, p.chunked, 'Trailer: X-Hub-Signature-256']) +
    `${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}X-Hub-Signature-256: ${p.signed['X-Hub-Signature-256']}${CRLF}${CRLF}`],
  ['an id in the trailer', (p) => head(['Host: onced', `X-Hub-Signature-256: ${p.signed['X-Hub-Signature-256']}`, p.chunked]) +
    `${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}X-GitHub-Delivery: ${p.id}${CRLF}${CRLF}`],
];

// Of one reading, but a proxy may have another: either refused, or handled
// once and exactly as it was signed.
const odd = [
  ['leading zeros', (p) => head([...p.list, `Content-Length: 000${p.body.length}`]) + p.body],
  ['spaces around a length', (p) => head([...p.list, `Content-Length: \t ${p.body.length} \t`]) + p.body],
  ['Chunked', (p) => head([...p.list, 'Transfer-Encoding: Chunked']) + chunks(p.body)],
  ['many chunks', (p) => head([...p.list, p.chunked]) + chunks(...p.body)],
  ['an extension of a chunk', (p) => head([...p.list, p.chunked]) + `${p.body.length.toString(16)};a=b${CRLF}${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['LF in an extension', (p) => head([...p.list, p.chunked]) + `${p.body.length.toString(16)};a\n${p.body}${CRLF}0${CRLF}${CRLF}`],
  ['chunk lines that end with LF', (p) => head([...p.list, p.chunked]) + chunks(p.body).replaceAll('\r\n', '\n')],
  ['a trailer with a length', (p) => head([...p.list, p.chunked]) + `${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}Content-Length: 0${CRLF}${CRLF}`],
  ['a trailer with another id', (p) => head([...p.list, p.chunked]) +
    `${p.body.length.toString(16)}${CRLF}${p.body}${CRLF}0${CRLF}X-GitHub-Delivery: inner-${p.id.slice(6)}${CRLF}${CRLF}`],
  ['underscores', (p) => head([...p.list, 'Transfer_Encoding: chunked', 'Content_Length: 0', p.length]) + p.body],
  ['an upgrade', (p) => head([...p.list, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA', p.length]) + p.body],
  ['another method in a header', (p) => head([...p.list, 'X-HTTP-Method-Override: DELETE', p.length]) + p.body],
  ['the whole URL', (p) => head([...p.list, p.length], 'POST http://onced/github HTTP/1.1') + p.body],
  ['the whole URL of another host', (p) => head([...p.list, p.length], 'POST http://other/github HTTP/1.1') + p.body],
  ['an encoded letter', (p) => head([...p.list, p.length], 'POST /%67ithub HTTP/1.1') + p.body],
  ['an empty line first', (p) => CRLF + head([...p.list, p.length]) + p.body],
  ['the signature is named by Connection', (p) => head([...p.list, 'Connection: X-Hub-Signature-256, X-GitHub-Delivery', p.length]) + p.body],
];

let n = 0;
const seen = [];
for (const [list, mayPass] of [[doubtful, false], [odd, true]]) {
  for (const [what, make] of list) {
    const p = parts(n++);
    const answers = await raw(worker.port, Buffer.from(make(p), 'latin1'));
    const said = answers.map((answer) => answer.status).join(' ');
    const passed = answers.filter((answer) => answer.status < 300).length;
    assert.ok(answers.every((answer) => answer.status < 500 || answer.status === 501 || answer.status === 505), `${what}: ${said}`);
    assert.ok(passed <= (mayPass ? 1 : 0), `${what}: answered ${said}`);
    assert.ok(mayPass || answers.length <= 1, `${what}: answered ${said}`);
    seen.push([what, p, passed, said]);
  }
}
if (process.env.VERBOSE) for (const [what, , , said] of seen) console.log(`${said || '-'}\t${what}`);

// One after the other over one connection they are two, as they should be.
const two = [parts(n++), parts(n++)];
const pipelined = await raw(worker.port, two.map((p) => head([...p.list, p.length]) + p.body).join(''));
assert.equal(pipelined.length, 2);
two.forEach((p, i) => seen.push([`request ${i} of two`, p, 1, '202']));

const counts = await worker.settled('github');
const passed = seen.filter(([, , good]) => good === 1);
assert.equal(counts.succeeded, passed.length);
assert.equal(handler.invocations.length, passed.length, 'nothing else was handled');
for (const [what, p, good] of seen) {
  const handled = handler.of(p.id);
  assert.equal(handled.length, good, what);
  if (good === 1) assert.equal(handled[0].body.toString(), p.body, what);
  for (const id of good === 1 ? [`inner-${p.id.slice(6)}`] : [p.id, `inner-${p.id.slice(6)}`]) {
    assert.equal((await worker.admin(`/v1/events/github/${id}`)).status, 404, what);
  }
}
assert.equal(await worker.stop(), 0);
await handler.close();
console.log(`${doubtful.length} doubtful requests refused, ${odd.length} odd ones handled at most once, none was two`);
