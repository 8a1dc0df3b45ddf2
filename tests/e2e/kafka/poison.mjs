// SPDX-License-Identifier: MIT
// One message that always fails among good ones of its partition: they are
// settled while it waits, its offset holds the group's, and after its attempts
// it is dead. Its dead letter is what arrived, byte for byte, with headers that
// say why; a replay handles it once.

import assert from 'node:assert/strict';
import { inState } from '../support/fault.mjs';
import { caughtUp, eachCommitted, kafkaRoute, kafkaWorker, message } from '../support/kafka.mjs';
import { Handler, until } from '../lib.mjs';
import { Broker, bytesOf, headerOf, headersOf, run, unique } from './broker.mjs';

const broker = Broker.shared();
const [topic, dead, group] = [unique('poison'), unique('poison.dlq'), unique('poison')];
await broker.create(topic, dead);

const good = 200;
const attempts = 3;
const bytes = Buffer.from([0x00, 0xff, 0x0a, 0x7b, 0x80, 0x00]);
const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const poison = message(topic, 0, 'poison', {
  key: Buffer.from([0xfe, 0x00, 0x01]), value: bytes, timestamp: 1700000000123,
  headers: [['event-id', 'poison'], ['traceparent', traceparent], ['bin', Buffer.from([0, 1, 0xff])], ['none', null],
    ['twice', 'a'], ['twice', 'b'], ['empty', '']],
});
const at = good / 2;
const messages = Array.from({ length: good }, (_, i) => message(topic, 0, `good-${i}`));
messages.splice(at, 0, poison);

// The second attempt of the poison ends when the test says so.
let letGo;
const held = new Promise((resolve) => (letGo = resolve));
let cured = false;
const handler = await new Handler(async ({ id, attempt }) => {
  if (id !== 'poison' || cured) return 200;
  if (attempt === 2) await held;
  return { status: 429, headers: { 'Onced-Code': 'no-stock' } };
}).listen();
const worker = kafkaWorker('poison', broker, kafkaRoute(handler, [topic], group, {
  retry: { max_attempts: attempts, backoff: '50ms', max_backoff: '100ms' },
  dead_letter: { kafka: { topic: dead, headers: ['connect', 'spring'] } },
}));
await worker.start();
const watch = broker.watchCommitted(group, 20);
await broker.produce(messages);

// --- the others go on -----------------------------------------------------------------------------

await until('the poison to be tried again', () => handler.of('poison').length === 2);
await until('the good ones to be settled', async () => (await worker.counts('orders')).succeeded === good);
assert.equal((await worker.event('orders', 'poison')).state, 'RUNNING');
await until('the offsets below it to be committed', async () =>
  (await broker.committed(group)).some((o) => o.offset === at));
const [partition] = (await worker.json('/v1/status')).kafka;
assert.equal(partition.low_water, at);
const before = Date.now();
letGo();

const event = await inState(worker, 'orders', 'poison', 'DEAD');
assert.equal(event.reason, 'exhausted');
assert.equal(event.code, 'no-stock');
assert.equal(event.attempts, attempts);
await caughtUp(broker, group, topic);
eachCommitted(await watch.stop(), topic, (_, offset, seen) =>
  assert.ok(offset < at || seen >= before, `offset ${offset} was committed while ${at} was not settled`));
for (let i = 0; i < good; i++) assert.equal(handler.of(`good-${i}`).length, 1, `good-${i}`);
assert.equal(handler.of('poison').length, attempts);
assert.equal(new Set(handler.of('poison').map((i) => i.key)).size, 1);
assert.deepEqual([...new Set(handler.of('poison').map((i) => i.headers.traceparent))], [traceparent]);

// --- its dead letter ------------------------------------------------------------------------------

const letters = await until('the dead letter', async () => {
  const found = await broker.consume(dead);
  return found.length > 0 && found;
});
assert.equal(letters.length, 1);
const [letter] = letters;
assert.deepEqual(bytesOf(letter, 'key'), poison.key);
assert.deepEqual(bytesOf(letter, 'value'), bytes);
assert.equal(letter.timestamp, poison.timestamp);
const asBytes = (part) => (part === null ? null : Buffer.from(part));
const headers = headersOf(letter);
assert.deepEqual(headers.slice(0, poison.headers.length), poison.headers.map(([n, v]) => [n, asBytes(v)]));
assert.equal(headers[poison.headers.length][0], 'onced-dead-letter');
const { key } = handler.of('poison')[0];
for (const [name, value] of Object.entries({
  'onced-dead-letter': '1', 'onced-source': 'kafka', 'onced-topic': topic, 'onced-partition': '0', 'onced-offset': String(at),
  'onced-timestamp': '1700000000123', 'onced-route': 'orders', 'onced-event-id': 'poison', 'onced-reason': 'exhausted',
  'onced-code': 'no-stock', 'onced-idempotency-key': key, 'onced-run': '1', 'onced-attempts': String(attempts),
  'onced-deliveries': '1',
  '__connect.errors.topic': topic, '__connect.errors.partition': '0', '__connect.errors.offset': String(at),
  '__connect.errors.connector.name': 'orders', '__connect.errors.exception.class.name': 'onced.exhausted',
  'kafka_dlt-original-topic': topic, 'kafka_dlt-original-consumer-group': group,
})) assert.equal(headerOf(letter, name), value, name);
for (const name of ['onced-first-seen', 'onced-died']) {
  assert.match(headerOf(letter, name), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, name);
}
const bytesNamed = (name) => headers.find(([n]) => n === name)[1];
assert.equal(bytesNamed('kafka_dlt-original-partition').readInt32BE(), 0);
assert.equal(bytesNamed('kafka_dlt-original-offset').readBigInt64BE(), BigInt(at));
assert.equal(bytesNamed('kafka_dlt-original-timestamp').readBigInt64BE(), 1700000000123n);

// By another client's eyes: lengths, timestamp, headers.
const kcat = await run('kcat', ['-C', '-q', '-e', '-b', broker.servers, '-t', dead, '-o', 'beginning', '-f', '%T %K %S %h\n']);
assert.equal(kcat.code, 0, kcat.err);
assert.ok(kcat.out.startsWith('1700000000123 3 6 event-id=poison,'), kcat.out);
for (const part of [`traceparent=${traceparent}`, 'none=NULL', 'twice=a,twice=b,empty=,onced-dead-letter=1', `onced-topic=${topic}`,
  'onced-reason=exhausted', `onced-offset=${at}`, 'onced-event-id=poison']) assert.ok(kcat.out.includes(part), `${part} in ${kcat.out}`);

// --- its replay -----------------------------------------------------------------------------------

cured = true;
const replay = await worker.command('replay', 'orders', 'poison');
assert.equal(replay.code, 0, replay.err);
const healed = await inState(worker, 'orders', 'poison', 'SUCCEEDED');
assert.equal(healed.attempts, attempts + 1);
const again = await worker.command('replay', 'orders', 'poison');
assert.match(again.out, /nothing-to-do/);
assert.equal(await worker.stop(), 0);
assert.equal(handler.of('poison').length, attempts + 1);
const last = handler.of('poison').at(-1);
assert.equal(last.key, key);
assert.deepEqual(last.body, bytes);
assert.equal(last.headers.traceparent, traceparent);
assert.equal(last.headers['onced-kafka-offset'], String(at));
await worker.start();
assert.equal((await worker.event('orders', 'poison')).state, 'SUCCEEDED');
assert.equal(await worker.stop(), 0);
assert.equal(handler.invocations.length, good + attempts + 1);
assert.equal((await broker.consume(dead)).length, 1);
await handler.close();
