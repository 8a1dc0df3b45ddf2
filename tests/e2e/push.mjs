// SPDX-License-Identifier: MIT
// A push as GitHub sends it, with a query string; the worker is killed during
// the first attempt. The second attempt sees the same body, event, delivery
// and query, under the same key.

import assert from 'node:assert/strict';
import { githubExamples } from './senders/index.mjs';
import { Handler, Worker, githubHeaders, githubRoute, makeFolder, until } from './lib.mjs';

const push = githubExamples.find((e) => e.name === 'push').examples[0];
const body = JSON.stringify(push);

let first = true;
const handler = await new Handler(async () => {
  if (!first) return 200;
  first = false;
  await worker.kill();
  return null;
}).listen();
const worker = new Worker(makeFolder('push'), { routes: [githubRoute(handler)] });
await worker.start();

const id = '72d3162e-cc78-11e3-81ab-4c9367dc0958';
const { status } = await worker.post('/github?team=a%2Fb&x=1+2', githubHeaders(id, body), body);
assert.equal(status, 202);
await until('the worker to be dead', () => worker.child === null);
await worker.start();
const counts = await worker.settled('github');
assert.equal(counts.succeeded, 1);

const [one, two] = handler.invocations;
assert.equal(handler.invocations.length, 2);
for (const seen of [one, two]) {
  assert.equal(seen.body.toString(), body);
  assert.equal(seen.url, '/hook?team=a%2Fb&x=1+2');
  assert.equal(seen.headers['x-github-event'], 'push');
  assert.equal(seen.headers['x-github-delivery'], id);
  assert.equal(seen.id, id);
}
assert.deepEqual([one.attempt, two.attempt], [1, 2]);
assert.equal(one.key, two.key);

const event = await worker.event('github', id);
assert.equal(event.state, 'SUCCEEDED');
assert.equal(event.attempts, 2);
assert.ok(event.history.some((row) => row.what === 'crashed'), JSON.stringify(event.history));
assert.equal(await worker.stop(), 0);
await handler.close();
console.log('the retry after kill -9 saw the same request');
