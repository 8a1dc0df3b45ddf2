// SPDX-License-Identifier: MIT
// The durable way from a webhook to a topic: each event is there once, keyed by
// its id, however often it is sent; and where the broker is away it is kept,
// and written when it is back.

import assert from 'node:assert/strict';
import http from 'node:http';
import { metric } from '../support/fault.mjs';
import { kafkaWorker } from '../support/kafka.mjs';
import { githubHeaders, githubSecret, parallel, until } from '../lib.mjs';
import { Cluster, headerOf, headersOf } from './broker.mjs';

const cluster = await Cluster.start({ nodes: 1 });
const topic = 'hooks';
await cluster.create(`${topic}:3`);
const worker = kafkaWorker('bridge', cluster, {
  name: 'hooks',
  source: { http: { path: '/hooks' } },
  verify: { scheme: 'github', secrets: [{ value: githubSecret }] },
  id: 'header:X-GitHub-Delivery',
  handler: { kafka: { topic, timeout: '3s' } },
  retry: { backoff: '50ms', max_backoff: '200ms' },
});
await worker.start();

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
const body = (id) => Buffer.from(`{"id":"${id}","text":"grüße"}`);
const post = (id, more = {}) => worker.post('/hooks?a=b', { ...githubHeaders(id, body(id)), ...more }, body(id), agent);
const postAll = (ids, status) => parallel(16, ids.map((id) => async () => assert.equal((await post(id)).status, status, id)));
const ids = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}-${i}`);

// --- each once, as it came ------------------------------------------------------------------------

const first = ids('d', 300);
await postAll(first, 202);
await postAll(first, 200);
assert.equal((await post('traced', { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', 'X-Custom': 'c',
  Authorization: 'Bearer secret' })).status, 202);
await worker.settled('hooks');
const messages = await cluster.consume(topic);
assert.deepEqual(messages.map((m) => m.key).sort(), [...first, 'traced'].sort());
assert.ok(new Set(messages.map((m) => m.partition)).size === 3, 'all partitions are written');

const traced = messages.find((m) => m.key === 'traced');
assert.equal(traced.value, String(body('traced')));
const { idempotency_key: key, result } = await worker.event('hooks', 'traced');
assert.deepEqual(JSON.parse(result.body), { topic, partition: traced.partition, offset: traced.offset });
const named = Object.fromEntries(headersOf(traced).map(([name, value]) => [name, String(value)]));
assert.equal(named['content-type'], 'application/json');
assert.equal(named.traceparent, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
assert.equal(named['http-header-x-custom'], 'c');
assert.equal(named['http-header-x-github-event'], 'push');
assert.deepEqual(Object.keys(named).filter((n) => /authorization|signature|host|connection|content-length/.test(n)), []);
assert.deepEqual(Object.keys(named).slice(-4), ['onced-route', 'onced-event-id', 'onced-attempt', 'idempotency-key']);
assert.deepEqual(Object.values(named).slice(-4), ['hooks', 'traced', '1', key]);

// --- the broker is away ---------------------------------------------------------------------------

await cluster.killNode(1);
const second = ids('away', 50);
await postAll(second, 202);
await postAll(first.slice(0, 20), 200);
const unreached = () => metric(worker, 'onced_attempts_total{route="hooks",result="unreached"}');
await until('attempts without a broker', async () => (await unreached()) > 0);
assert.equal((await worker.counts('hooks')).succeeded, first.length + 1);
assert.equal(await worker.stop(), 0);
await worker.start();
await postAll(second, 200);
await cluster.startNode(1);
await worker.settled('hooks', 90000);
const counts = await worker.counts('hooks');
assert.equal(counts.succeeded, first.length + 1 + second.length);
assert.equal(counts.dead, 0);
assert.equal(await worker.stop(), 0);

const all = await cluster.consume(topic);
assert.deepEqual(all.map((m) => m.key).sort(), [...first, 'traced', ...second].sort());
for (const message of all) {
  assert.equal(headerOf(message, 'onced-event-id'), message.key);
  assert.equal(message.value, String(body(message.key)));
}
agent.destroy();
console.log(`${all.length} webhooks, each once on the topic`);
