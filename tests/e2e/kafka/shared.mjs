// SPDX-License-Identifier: MIT
// One memory for a webhook route and a Kafka route: an id that comes both ways
// is handled once, whichever was first. And what a message looks like to its
// handler, HTTP or a program, on every attempt and as a dead letter; and a
// message without an id, which is dead at once and stops nothing.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { script } from '../support/fault.mjs';
import { caughtUp, dice, kafkaRoute, kafkaWorker, message } from '../support/kafka.mjs';
import { Handler, parallel, until } from '../lib.mjs';
import { Broker, bytesOf, headerOf, headersOf, unique } from './broker.mjs';

const broker = Broker.shared();
const [topic, looks, program, dead] = ['shared', 'looks', 'program', 'dead'].map(unique);
const group = unique('shared');
await broker.create(`${topic}:4`, looks, program, dead);

const answers = new Map(); // of an id: the statuses of its attempts, then 200
const handler = await new Handler(({ id, attempt }) => answers.get(id)?.[attempt - 1] ?? 200).listen();
const retry = { backoff: '20ms', max_backoff: '50ms' };
const dead_letter = { kafka: { topic: dead } };
const worker = kafkaWorker('shared', broker, [
  kafkaRoute(handler, [topic], group, { namespace: 'payments', retry }),
  {
    name: 'web', namespace: 'payments', source: { http: { path: '/web' } }, verify: 'none', id: 'header:X-Id', retry,
    handler: { http: { url: `http://127.0.0.1:${handler.port}/`, timeout: '60s' } },
  },
  kafkaRoute(handler, [looks], group, { name: 'looks', retry, dead_letter }),
  {
    name: 'program', source: { kafka: { topics: program, group } }, id: ['kafka:header:event-id', 'kafka:position'], retry,
    handler: { exec: { command: ['./program'] } },
  },
]);
script(worker.folder, 'program', `mkdir -p seen
{ env | grep -E '^(ONCED|IDEMPOTENCY|CONTENT)' | sort; echo ---; cat; } >seen/$ONCED_KAFKA_OFFSET-$ONCED_ATTEMPT
[ "$ONCED_ATTEMPT" != 1 ] || exit 75`);
await worker.start();

// --- one memory -----------------------------------------------------------------------------------

const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
const post = (id) => worker.post('/web', { 'X-Id': id }, id, agent);
const produce = (ids) => broker.produceMany(ids.map((id, n) => message(topic, n % 4, id)));
const ids = (prefix, n) => Array.from({ length: n }, (_, i) => `${prefix}-${i}`);

const web = ids('web', 100);
await parallel(16, web.map((id) => async () => assert.equal((await post(id)).status, 202)));
await produce(web);
const bus = ids('bus', 100);
await produce(bus);
await caughtUp(broker, group, topic);
await parallel(16, bus.map((id) => async () => assert.equal((await post(id)).status, 200)));
// Both at once, over and over, and while the first attempts end in doubt.
const both = ids('both', 300);
const random = dice(11);
for (const id of both) if (random() < 0.3) answers.set(id, [503]);
const statuses = [];
await Promise.all([
  produce([...both, ...both]),
  parallel(16, [...both, ...both].map((id) => async () => statuses.push((await post(id)).status))),
]);
await caughtUp(broker, group, topic);
await Promise.all([worker.settled('orders'), worker.settled('web')]);
assert.deepEqual([...new Set(statuses)].sort(), [200, 202]);
for (const id of [...web, ...bus, ...both]) {
  const attempts = handler.of(id);
  assert.equal(attempts.length, 1 + (answers.get(id)?.length ?? 0), id);
  assert.equal(new Set(attempts.map((i) => i.key)).size, 1, id);
}
const firstBy = (ids) => [...new Set(ids.map((id) => handler.of(id)[0].headers['onced-route']))].sort();
assert.deepEqual(firstBy(web), ['web']);
assert.deepEqual(firstBy(bus), ['orders']);
console.log(`both ways at once: ${both.filter((id) => firstBy([id])[0] === 'web').length} of ${both.length} by the webhook first`);
for (const route of ['orders', 'web']) assert.equal((await worker.event(route, 'both-7')).deliveries, 4);

// --- what the handler gets ------------------------------------------------------------------------

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const binary = Buffer.from([0, 0xff, 0x0a]);
const value = Buffer.from([0xff, 0, 0x7b]);
const common = [['content-type', 'application/x-thing'], ['traceparent', traceparent], ['tracestate', 'a=b']];
const messages = [
  { id: 'full', key: 'key-1', value, headers: [...common, ['text', 'grüße'], ['bin', binary], ['none', null], ['a b/ü', 'odd']] },
  { id: 'nothing', key: null, value: null },
  { id: 'empty', key: '', value: '' },
  { id: 'dies', key: binary, value, headers: [...common, ['bin', binary], ['none', null]] },
].map(({ id, headers = [], ...rest }, n) => ({ topic: looks, partition: 0, timestamp: 1700000000000 + n,
  headers: [['event-id', id], ...headers], ...rest }));
answers.set('full', [503, 429]);
answers.set('dies', [503, 404]);
await broker.produce(messages);
await caughtUp(broker, group, looks);

const [full, again, third] = handler.of('full');
assert.equal(handler.of('full').length, 3);
const expected = {
  'onced-kafka-topic': looks, 'onced-kafka-partition': '0', 'onced-kafka-offset': '0', 'onced-kafka-timestamp': '1700000000000',
  'onced-kafka-key': 'key-1', 'onced-kafka-null': undefined, 'content-type': 'application/x-thing', traceparent, tracestate: 'a=b',
  'kafka-header-event-id': 'full', 'kafka-header-traceparent': traceparent,
  'kafka-header-text': Buffer.from('grüße').toString('latin1'), 'kafka-header-bin': binary.toString('base64'), 'kafka-header-none': '',
  'kafka-header-a%20b%2f%c3%bc': 'odd', 'onced-kafka-base64': 'Kafka-Header-bin', 'onced-route': 'looks',
};
for (const [n, attempt] of [full, again, third].entries()) {
  for (const [name, wanted] of Object.entries(expected)) assert.equal(attempt.headers[name], wanted, `${name} of attempt ${n + 1}`);
  assert.equal(attempt.method, 'POST');
  assert.deepEqual(attempt.body, value);
  assert.equal(attempt.key, full.key);
  assert.equal(attempt.attempt, n + 1);
}
const [[nothing], [empty], [dies]] = ['nothing', 'empty', 'dies'].map((id) => handler.of(id));
assert.deepEqual([nothing.headers['onced-kafka-null'], nothing.headers['onced-kafka-key'], nothing.body.length], ['1', undefined, 0]);
assert.deepEqual([empty.headers['onced-kafka-null'], empty.headers['onced-kafka-key'], empty.body.length], [undefined, '', 0]);
assert.equal(dies.headers['onced-kafka-key'], binary.toString('base64'));
assert.equal(dies.headers['onced-kafka-base64'], 'Onced-Kafka-Key, Kafka-Header-bin');

// Refused at its second attempt, after one in doubt: its letter is what came.
assert.equal((await worker.event('looks', 'dies')).reason, 'refused');
const letterOf = (id) => until(`the dead letter of ${id}`, async () =>
  (await broker.consume(dead)).find((m) => headerOf(m, 'onced-event-id') === id));
const letter = await letterOf('dies');
assert.deepEqual([bytesOf(letter, 'key'), bytesOf(letter, 'value'), letter.timestamp], [binary, value, 1700000000003]);
const asBytes = (part) => (part === null ? null : Buffer.from(part));
assert.deepEqual(headersOf(letter).slice(0, messages[3].headers.length), messages[3].headers.map(([n, v]) => [n, asBytes(v)]));
assert.equal(headerOf(letter, 'onced-reason'), 'refused');

// --- no id ----------------------------------------------------------------------------------------

await broker.produce([
  { topic: looks, partition: 0, value: 'no id', headers: [['traceparent', traceparent]] },
  { topic: looks, partition: 0, value: 'two ids', headers: [['event-id', 'x'], ['event-id', 'y']] },
  { topic: looks, partition: 0, value: null, headers: [['event-id', 'control\u0001']] },
  message(looks, 0, 'behind'),
]);
await until('the one behind', () => handler.of('behind').length === 1);
await caughtUp(broker, group, looks);
for (const [offset, value] of [[4, 'no id'], [5, 'two ids'], [6, null]]) {
  const id = `${looks}/0/${offset}`;
  const event = await worker.event('looks', id);
  assert.deepEqual([event.state, event.reason, event.attempts], ['DEAD', 'undecodable', 0]);
  assert.equal(handler.of(id).length, 0);
  const { value: kept, ...undecodable } = await letterOf(id);
  assert.equal(kept, value);
  assert.deepEqual(['onced-reason', 'onced-topic', 'onced-offset'].map((name) => headerOf(undecodable, name)),
    ['undecodable', looks, String(offset)]);
}
assert.equal(headerOf(await letterOf(`${looks}/0/4`), 'traceparent'), traceparent);
const refused = await worker.command('replay', 'looks', `${looks}/0/4`);
assert.match(refused.out, /refused: it cannot be decoded; DEAD/);

// --- a program ------------------------------------------------------------------------------------

await broker.produce([
  { topic: program, partition: 0, key: 'k', value: 'for a program\n', timestamp: 1700000000009,
    headers: [['event-id', 'p'], ['traceparent', traceparent], ['x-y', '1'], ['bin', binary]] },
  { topic: program, partition: 0, value: null, timestamp: 1700000000010 },
]);
await until('both', async () => (await worker.counts('program')).succeeded === 2);
const seen = (offset, attempt) => {
  const [head, body] = fs.readFileSync(path.join(worker.folder, `seen/${offset}-${attempt}`), 'utf8').split('---\n');
  return { ...Object.fromEntries(head.trim().split('\n').map((line) => line.split(/=(.*)/s, 2))), body };
};
for (const attempt of [1, 2]) {
  const { IDEMPOTENCY_KEY, ...rest } = seen(0, attempt);
  assert.equal(IDEMPOTENCY_KEY, seen(0, 1).IDEMPOTENCY_KEY);
  assert.deepEqual(rest, {
    ONCED_ROUTE: 'program', ONCED_EVENT_ID: 'p', ONCED_ATTEMPT: String(attempt), ONCED_KAFKA_TOPIC: program,
    ONCED_KAFKA_PARTITION: '0', ONCED_KAFKA_OFFSET: '0', ONCED_KAFKA_TIMESTAMP: '1700000000009', ONCED_KAFKA_KEY: 'k',
    ONCED_HEADER_EVENT_ID: 'p', ONCED_HEADER_TRACEPARENT: traceparent, ONCED_HEADER_X_Y: '1',
    ONCED_HEADER_BIN: binary.toString('base64'), ONCED_KAFKA_BASE64: 'ONCED_HEADER_BIN', body: 'for a program\n',
  });
}
const tombstone = seen(1, 2);
assert.deepEqual([tombstone.ONCED_EVENT_ID, tombstone.ONCED_KAFKA_NULL, tombstone.ONCED_KAFKA_KEY, tombstone.body],
  [`${program}/0/1`, '1', undefined, '']);
assert.equal(await worker.stop(), 0);
agent.destroy();
await handler.close();
