// SPDX-License-Identifier: MIT
// Dead letters read back from a topic: onced's own, and those of Kafka Connect
// and of spring-kafka, byte for byte as they write them. Each is replayed under
// the identity that it had, and handled once, however often the order is given;
// filters, dry runs and the guard against loops do what they say.

import assert from 'node:assert/strict';
import { inState } from '../support/fault.mjs';
import { kafkaRoute, kafkaWorker, message } from '../support/kafka.mjs';
import { Handler, githubHeaders, githubRoute, until } from '../lib.mjs';
import { Broker, bytesOf, headerOf, headersOf, unique } from './broker.mjs';

const broker = Broker.shared();
const [orders, places, empty, dead, theirs] = ['orders', 'places', 'empty', 'dead', 'theirs'].map(unique);
await broker.create(orders, `${places}:2`, empty, `${dead}:3`, theirs);

const sick = new Set(); // these ids fail
const answers = { refused: 400, exhausted: 429 };
const answer = ({ id }) => (sick.has(id) ? answers[id.split('-')[0]] ?? 429 : 200);
const handler = await new Handler(answer).listen();
const deadLetters = (more) => ({ retry: { max_attempts: 1 }, dead_letter: { kafka: { topic: dead } }, ...more });
const routes = (group, topics) => [
  kafkaRoute(handler, [topics.orders], group, deadLetters()),
  kafkaRoute(handler, [topics.places], group, { name: 'places', id: 'kafka:position' }),
  githubRoute(handler, deadLetters()),
];
const group = unique('replay');
const worker = kafkaWorker('replay', broker, routes(group, { orders, places }));
await worker.start();

// Runs the command on a topic; gives its lines by id, and its counts.
async function replay(on, topic, ...options) {
  const { code, out, err } = await on.command('replay', '--from-topic', topic, '--json', ...options);
  assert.ok(out, `${code} ${err}`);
  const { letters, counts } = JSON.parse(out);
  return { code, err, letters, counts, results: Object.fromEntries(letters.map((l) => [l.id ?? `${l.writer}/${l.offset}`, l.result])) };
}

const lettersOf = (topic, n) => until(`${n} dead letters`, async () => {
  const letters = await broker.consume(topic);
  return letters.length >= n && letters;
});
// The same for an event that is still to come.
async function comes(on, route, id, state) {
  const target = `/v1/events/${encodeURIComponent(route)}/${encodeURIComponent(id)}`;
  await until(`${id} to come`, async () => (await on.admin(target)).status === 200);
  return inState(on, route, id, state);
}
const states = async (on, route, ids) => Promise.all(ids.map(async (id) => (await on.event(route, id)).state));
const times = (id) => handler.of(id).length;

// --- onced's own ----------------------------------------------------------------------------------

const bytes = Buffer.from([0x00, 0xff, 0x7b, 0x80]);
const ids = ['refused-1', 'exhausted-1', 'exhausted-2'];
ids.forEach((id) => sick.add(id));
await broker.produce([
  message(orders, 0, 'good'),
  message(orders, 0, 'refused-1', { key: 'k' }),
  message(orders, 0, 'exhausted-1', {
    key: Buffer.from([0xfe, 0x00]), value: bytes, timestamp: Date.now() - 5000,
    headers: [['event-id', 'exhausted-1'], ['bin', Buffer.from([0, 0xff])], ['none', null]],
  }),
  message(orders, 0, 'exhausted-2'),
]);
for (const id of ids) await comes(worker, 'orders', id, 'DEAD');
await lettersOf(dead, 3);
await broker.produce([message(dead, 0, 'no letter')]);

const dry = await replay(worker, dead, '--dry-run');
assert.equal(dry.code, 0, dry.err);
assert.deepEqual(dry.results, { 'refused-1': 'replayed', 'exhausted-1': 'replayed', 'exhausted-2': 'replayed' });
assert.deepEqual([dry.counts.messages, dry.counts.not_letters, dry.counts.matched, dry.counts.replayed], [4, 1, 3, 3]);
assert.equal(dry.counts.dry_run, true);
const filters = [
  [['--route', 'orders'], ids],
  [['--route', 'places'], []],
  [['--reason', 'refused'], ['refused-1']],
  [['--id', 'exhausted-2'], ['exhausted-2']],
  [['--since', '1h'], ids],
  [['--until', '1h'], []],
  [['--since', new Date(Date.now() + 60000).toISOString()], []],
  [['--reason', 'exhausted', '--since', '1h', '--until', new Date(Date.now() + 60000).toISOString()], ['exhausted-1', 'exhausted-2']],
];
for (const [options, expected] of filters) {
  const { code, results, counts } = await replay(worker, dead, '--dry-run', ...options);
  assert.equal(code, 0);
  assert.deepEqual(Object.keys(results).sort(), [...expected].sort(), options.join(' '));
  assert.equal(counts.matched, expected.length);
}
assert.deepEqual(await states(worker, 'orders', ids), ['DEAD', 'DEAD', 'DEAD']);
for (const id of ids) assert.equal(times(id), 1);

const listed = await worker.command('replay', '--from-topic', dead, '--dry-run');
assert.match(listed.out, /: orders exhausted-1: dry run, replayed\n/);
assert.match(listed.out, /\n4 read, 3 matched, 3 replayed, 1 no dead letters; nothing was done\n$/);

// One of them by its id, then all: each is attempted once more, under its key.
sick.clear();
const one = await worker.command('replay', '--from-topic', dead, '--id', 'refused-1', '--why', 'mended');
assert.equal(one.code, 0, one.err);
assert.match(one.out, new RegExp(`^${dead}/\\d/\\d: orders refused-1: replayed\n`));
assert.match(one.out, /\n4 read, 1 matched, 1 replayed, 1 no dead letters\n$/);
await inState(worker, 'orders', 'refused-1', 'SUCCEEDED');
const all = await replay(worker, dead, '--rate', '10');
assert.equal(all.code, 0, all.err);
assert.deepEqual(all.results, { 'refused-1': 'nothing-to-do', 'exhausted-1': 'replayed', 'exhausted-2': 'replayed' });
for (const id of ids) {
  const event = await inState(worker, 'orders', id, 'SUCCEEDED');
  assert.equal(event.run, 1);
  assert.equal(event.attempts, 2);
  assert.equal(new Set(handler.of(id).map((i) => i.key)).size, 1);
}
const told = (await worker.event('orders', 'refused-1')).history.find((row) => row.what === 'replayed');
assert.match(told.why, /mended/);
const third = await replay(worker, dead);
assert.equal(third.code, 0);
assert.deepEqual(third.counts.nothing_to_do, 3);
for (const id of ids) assert.equal(times(id), 2, id);

// Nobody joined a group for it.
assert.deepEqual((await broker.groups()).map((g) => g.group).filter((g) => /onced|reader/.test(g)), []);

// --- in another store -----------------------------------------------------------------------------

const other = kafkaWorker('replay-other', broker, routes(unique('other'), { orders: empty, places: empty }));
await other.start();
sick.add('exhausted-1');
const fresh = await replay(other, dead, '--rate', '4');
assert.equal(fresh.code, 0, fresh.err);
assert.deepEqual(fresh.results, { 'refused-1': 'delivered', 'exhausted-1': 'delivered', 'exhausted-2': 'delivered' });
await inState(other, 'orders', 'refused-1', 'SUCCEEDED');
await inState(other, 'orders', 'exhausted-2', 'SUCCEEDED');
await inState(other, 'orders', 'exhausted-1', 'DEAD');
const [first] = handler.of('exhausted-1');
const last = handler.of('exhausted-1').at(-1);
assert.deepEqual(last.body, bytes);
for (const name of ['onced-kafka-topic', 'onced-kafka-partition', 'onced-kafka-offset', 'onced-kafka-timestamp', 'onced-kafka-key', 'onced-kafka-key-base64']) {
  assert.equal(last.headers[name], first.headers[name], name);
}
assert.equal(last.headers['onced-kafka-offset'], '2');

// Its second letter tells that it was replayed; key, value and the sender's
// headers are those of the first message still.
const again = (await lettersOf(dead, 5)).find((l) => headerOf(l, 'onced-replays') === '1');
assert.ok(again, 'a letter that was replayed once');
assert.equal(headerOf(again, 'onced-event-id'), 'exhausted-1');
assert.deepEqual(bytesOf(again, 'key'), Buffer.from([0xfe, 0x00]));
assert.deepEqual(bytesOf(again, 'value'), bytes);
assert.deepEqual(headersOf(again).slice(0, 4).map(([name]) => name), ['event-id', 'bin', 'none', 'onced-dead-letter']);

// Of the two letters of one event the first one replays it; the guard counts
// what the letter tells and what the history does.
const before = times('exhausted-1');
const twice = await replay(other, dead, '--id', 'exhausted-1');
assert.deepEqual(twice.letters.map((l) => l.result).sort(), ['repeat', 'replayed']);
assert.equal(twice.counts.skipped_repeats, 1);
await until('the next attempt', () => times('exhausted-1') === before + 1);
await inState(other, 'orders', 'exhausted-1', 'DEAD');
await lettersOf(dead, 6);
const guarded = await replay(other, dead, '--id', 'exhausted-1', '--max-replays', '1');
assert.equal(guarded.code, 0);
assert.deepEqual(guarded.letters.map((l) => l.result), ['skipped', 'skipped', 'skipped']);
assert.equal(guarded.counts.skipped_max_replays, 3);
assert.equal((await other.event('orders', 'exhausted-1')).state, 'DEAD');
assert.equal(times('exhausted-1'), before + 1);

// --- those of others ------------------------------------------------------------------------------

const be32 = (n) => { const b = Buffer.alloc(4); b.writeInt32BE(n); return b; };
const be64 = (n) => { const b = Buffer.alloc(8); b.writeBigInt64BE(BigInt(n)); return b; };
const connect = (topic, partition, offset, cause) => [
  ['__connect.errors.topic', topic], ['__connect.errors.partition', `${partition}`], ['__connect.errors.offset', `${offset}`],
  ['__connect.errors.connector.name', 'sink'], ['__connect.errors.task.id', '0'], ['__connect.errors.stage', 'VALUE_CONVERTER'],
  ['__connect.errors.class.name', 'org.apache.kafka.connect.json.JsonConverter'],
  ['__connect.errors.exception.class.name', cause], ['__connect.errors.exception.message', 'it failed'],
  ['__connect.errors.exception.stacktrace', `${cause}: it failed\n\tat a.B.c(B.java:1)`],
];
const spring = (topic, partition, offset, timestamp) => [
  ['kafka_dlt-exception-fqcn', 'org.springframework.kafka.listener.ListenerExecutionFailedException'],
  ['kafka_dlt-exception-cause-fqcn', 'java.lang.IllegalStateException'], ['kafka_dlt-exception-message', 'it failed'],
  ['kafka_dlt-exception-stacktrace', 'trace'], ['kafka_dlt-original-topic', topic], ['kafka_dlt-original-partition', be32(partition)],
  ['kafka_dlt-original-offset', be64(offset)], ['kafka_dlt-original-timestamp', be64(timestamp)],
  ['kafka_dlt-original-timestamp-type', 'CreateTime'], ['kafka_dlt-original-consumer-group', 'payments'],
];
const hour = Date.now() - 3600000;
const dataError = 'org.apache.kafka.connect.errors.DataException';
await broker.produce([message(places, 1, 'handled')]);
await comes(worker, 'places', `${places}/1/0`, 'SUCCEEDED');
await broker.produce([
  { topic: theirs, partition: 0, key: 'a', value: bytes, headers: [['mine', 'x'], ...connect(places, 0, 7, dataError)] },
  { topic: theirs, partition: 0, key: 'b', value: 'spring', headers: [['mine', 'y'], ...spring(places, 1, 4294967298, hour)] },
  { topic: theirs, partition: 0, key: null, value: 'known', headers: connect(places, 1, 0, dataError) },
  { topic: theirs, partition: 0, value: 'elsewhere', headers: connect(orders, 0, 9, dataError) },
  { topic: theirs, partition: 0, value: 'broken', headers: [['kafka_dlt-original-topic', places], ['kafka_dlt-original-partition', '0']] },
]);
const [fromConnect, fromSpring, known] = [`${places}/0/7`, `${places}/1/4294967298`, `${places}/1/0`];

// Which route it is, nobody but the operator can say.
const nowhere = await replay(worker, theirs);
assert.equal(nowhere.code, 65, nowhere.err);
assert.deepEqual([nowhere.counts.matched, nowhere.counts.failed, nowhere.counts.not_letters], [4, 4, 1]);
assert.match(nowhere.letters[0].why, /--route/);
const expected = { [fromConnect]: 'delivered', [fromSpring]: 'delivered', [known]: 'nothing-to-do', 'connect/3': 'other-topic' };
const plan = await replay(worker, theirs, '--route', 'places', '--dry-run');
assert.equal(plan.code, 0, plan.err);
assert.deepEqual(plan.letters.map((l) => l.writer), ['connect', 'spring', 'connect', 'connect']);
assert.deepEqual(plan.letters.map((l) => l.result), Object.values(expected));
assert.equal(times(fromConnect), 0);
for (const [options, found] of [
  [['--id', fromSpring], [fromSpring]],
  [['--id', 'nothing'], []],
  [['--reason', 'ListenerExecutionFailedException'], [fromSpring]],
  [['--reason', dataError, '--id', fromConnect], [fromConnect]],
]) {
  const { letters } = await replay(worker, theirs, '--route', 'places', '--dry-run', ...options);
  assert.deepEqual(letters.map((l) => l.id), found, options.join(' '));
}
const real = await replay(worker, theirs, '--route', 'places');
assert.equal(real.code, 0, real.err);
assert.deepEqual(real.letters.map((l) => l.result), Object.values(expected));
for (const [id, topicKey, body] of [[fromConnect, 'a', bytes], [fromSpring, 'b', Buffer.from('spring')]]) {
  await inState(worker, 'places', id, 'SUCCEEDED');
  const [invocation] = handler.of(id);
  assert.deepEqual(invocation.body, body);
  assert.equal(invocation.headers['onced-kafka-topic'], places);
  assert.equal(invocation.headers['onced-kafka-key'], topicKey);
  assert.equal(invocation.headers['onced-kafka-offset'], id.split('/')[2]);
  assert.ok(!Object.keys(invocation.headers).some((name) => /connect|kafka_dlt/.test(name)), Object.keys(invocation.headers).join());
}
assert.equal(handler.of(fromSpring)[0].headers['onced-kafka-timestamp'], String(hour));
const repeated = await replay(worker, theirs, '--route', 'places');
assert.deepEqual(repeated.letters.map((l) => l.result), ['nothing-to-do', 'nothing-to-do', 'nothing-to-do', 'other-topic']);
for (const id of [fromConnect, fromSpring, known]) assert.equal(times(id), 1, id);
// One that is larger in base64 than other orders may be.
const large = Buffer.alloc(900000, 0xff);
await broker.produce([{ topic: theirs, partition: 0, value: large, headers: connect(places, 0, 8, dataError) }]);
assert.equal((await replay(worker, theirs, '--route', 'places', '--id', `${places}/0/8`)).counts.delivered, 1);
await inState(worker, 'places', `${places}/0/8`, 'SUCCEEDED');
assert.ok(handler.of(`${places}/0/8`)[0].body.equals(large));
const misplaced = await replay(worker, theirs, '--route', 'github');
assert.equal(misplaced.code, 65);
assert.match(misplaced.letters[0].why, /no message of a topic/);

// --- a webhook's ----------------------------------------------------------------------------------

sick.add('hook-1');
const body = JSON.stringify({ ref: 'refs/heads/main' });
assert.equal((await worker.post('/github?a=b', githubHeaders('hook-1', body), body)).status, 202);
await inState(worker, 'github', 'hook-1', 'DEAD');
await lettersOf(dead, 7);
sick.delete('hook-1');
const hook = await replay(worker, dead, '--route', 'github');
assert.deepEqual(hook.results, { 'hook-1': 'replayed' });
await inState(worker, 'github', 'hook-1', 'SUCCEEDED');
sick.add('hook-1');
const hookElsewhere = await replay(other, dead, '--route', 'github');
assert.deepEqual(hookElsewhere.results, { 'hook-1': 'delivered' });
await inState(other, 'github', 'hook-1', 'DEAD');
const hookLetters = (await lettersOf(dead, 8)).filter((l) => headerOf(l, 'onced-route') === 'github');
assert.deepEqual(hookLetters.map((l) => headerOf(l, 'onced-replays')).sort(), ['0', '1']);
sick.delete('hook-1');
const hookAgain = await replay(other, dead, '--route', 'github');
assert.deepEqual(hookAgain.letters.map((l) => l.result).sort(), ['repeat', 'replayed']);
await inState(other, 'github', 'hook-1', 'SUCCEEDED');
assert.equal((await replay(other, dead, '--route', 'github')).counts.nothing_to_do, 2);
assert.equal(times('hook-1'), 4);
const copy = handler.of('hook-1')[2];
assert.equal(copy.body.toString(), body);
assert.equal(copy.headers['x-github-event'], 'push');
assert.equal(copy.headers['x-hub-signature-256'], undefined);

// --- what cannot be -------------------------------------------------------------------------------

for (const [options, code, says] of [
  [[dead, '--route', 'nothing'], 66, /no route "nothing"/],
  [[unique('nothing')], 66, /kafka cluster "default": nothing-/],
  [[''], 64, /name of a topic/],
  [[dead, '--cluster', 'main'], 66, /no cluster "main"/],
  [[dead, '--since', 'long'], 64, /--since: "long" is neither/],
  [[dead, '--rate', '0'], 64, /--rate/],
  [[dead, '--max-replays', '0'], 64, /--max-replays/],
  [[dead, '--wait'], 64, /--wait/],
  [[dead, '--dead'], 64, /--dead/],
]) {
  const { code: got, out, err } = await worker.command('replay', '--from-topic', ...options);
  assert.equal(got, code, `${options.join(' ')}: ${out}${err}`);
  assert.match(err, says);
}
assert.equal(await other.stop(), 0);
const gone = await other.command('replay', '--from-topic', dead);
assert.equal(gone.code, 69, gone.err);
assert.match(gone.err, /no worker listens/);
assert.equal(await worker.stop(), 0);
await handler.close();
