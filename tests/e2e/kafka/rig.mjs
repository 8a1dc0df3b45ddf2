// SPDX-License-Identifier: MIT
// The rig that the tests with Kafka stand on: what is produced is read back as
// it was, by two independent clients; offsets, groups and topics can be seen
// and changed; clusters come and go, and leave no process behind.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { freePort, makeFolder, root, until } from '../lib.mjs';
import { Broker, Cluster, Mock, bytesOf, headerOf, headersOf, run, unique } from './broker.mjs';

const broker = Broker.shared();

// --- messages, as they were -----------------------------------------------------------------------

const parts = unique('parts');
const other = unique('other');
await broker.create(`${parts}:2`, { name: other, partitions: 1, config: { 'cleanup.policy': 'compact,delete' } });
const binary = Buffer.from([0, 255, 254, 10, 128]);
const sent = [
  { key: '', value: '' },
  { key: 'k', value: 'grüße', headers: [['h', '1'], ['h', '2'], ['null', null], ['empty', ''], ['bin', binary]] },
  { key: null, value: null },
  { key: binary, value: binary },
  { key: 'nul\0inside', value: '{"id":"1"}\n' },
  { key: 'absent' },
].map((message, i) => ({ topic: parts, partition: 1, timestamp: 1700000000000 + i, ...message }));
assert.deepEqual(await broker.produce(sent), sent.map((_, i) => ({ topic: parts, partition: 1, offset: i })));

const asBytes = (part) => (part === null || part === undefined ? null : Buffer.from(part));
const got = await broker.consume(parts);
assert.deepEqual(got.map((m) => [m.partition, m.offset, m.timestamp, m.timestamp_type]),
  sent.map((m, i) => [1, i, m.timestamp, 'create']));
assert.deepEqual(got.map((m) => [bytesOf(m, 'key'), bytesOf(m, 'value'), headersOf(m)]),
  sent.map((m) => [asBytes(m.key), asBytes(m.value), (m.headers ?? []).map(([n, v]) => [n, asBytes(v)])]));
assert.equal(headerOf(got[1], 'h'), '1');
assert.equal(headerOf(got[1], 'none'), undefined);

// kcat's own eyes: lengths of -1 are null.
const seen = await run('kcat', ['-C', '-q', '-e', '-b', broker.servers, '-t', parts, '-p', '1', '-o', 'beginning',
  '-f', '%o %T %K %S %h\n']);
assert.equal(seen.code, 0, seen.err);
const rows = seen.out.trim().split('\n').map((line) => line.trim());
assert.match(rows[1], /^1 1700000000001 1 7 h=1,h=2,null=NULL,empty=,bin=/);
assert.deepEqual(rows.filter((_, i) => i !== 1), ['0 1700000000000 0 0', '2 1700000000002 -1 -1',
  '3 1700000000003 5 5', '4 1700000000004 10 11', '5 1700000000005 6 -1']);

// And what kcat wrote, read by the tool.
const wrote = await run('kcat', ['-P', '-b', broker.servers, '-t', other, '-K', '=', '-H', 'from=kcat', '-Z'], 'a=1\nb=\n');
assert.equal(wrote.code, 0, wrote.err);
assert.deepEqual((await broker.consume(other)).map((m) => [m.offset, m.key, m.value, m.headers]),
  [[0, 'a', '1', [['from', 'kcat']]], [1, 'b', null, [['from', 'kcat']]]]);

// What the broker refuses is an error, not a silence: no key, compacted.
const refused = await broker.run('produce', [], { input: JSON.stringify({ topic: other, value: 'x' }) });
assert.equal(refused.code, 69, refused.err);
assert.deepEqual(JSON.parse(refused.out), { n: 0, error: 'INVALID_RECORD' });
assert.equal((await broker.run('produce', [], { input: '{"topic"' })).code, 65);
assert.equal((await broker.run('produce', [], { input: '{}' })).code, 65);
assert.equal((await broker.run('nothing')).code, 64);

// --- offsets, groups, topics ----------------------------------------------------------------------

const group = unique('group');
const at = (partition, offset, topic = parts) => ({ topic, partition, offset });
assert.deepEqual(await broker.committed(group), []);
await broker.setOffsets(group, at(0, 'end'), at(1, 4));
assert.deepEqual(await broker.committed(group), [at(0, 0), at(1, 4)]);
assert.deepEqual((await broker.groups()).filter((g) => g.group === group), [{ group, state: 'Empty' }]);
assert.deepEqual((await broker.describe(group)).members, []);

const watch = broker.watchCommitted(group, 10);
await until('the first look', () => watch.lines.length > 0);
await broker.setOffsets(group, at(1, 'end'));
await until('the change to be seen', () => watch.lines.at(-1).offsets.some((p) => p.partition === 1 && p.offset === 6));
const looks = (await watch.stop()).map((line) => line.offsets.find((p) => p.partition === 1).offset);
assert.deepEqual([...new Set(looks)], [4, 6]);

await broker.deleteRecords(at(1, 3));
assert.deepEqual(await broker.watermarks(parts),
  [{ topic: parts, partition: 0, low: 0, high: 0 }, { topic: parts, partition: 1, low: 3, high: 6 }]);
await broker.addPartitions(parts, 3);
assert.equal((await broker.watermarks(parts)).length, 3);
await broker.recreate(`${parts}:1`);
assert.deepEqual(await broker.watermarks(parts), [{ topic: parts, partition: 0, low: 0, high: 0 }]);
await broker.deleteGroups(group);
assert.deepEqual((await broker.groups()).filter((g) => g.group === group), []);
await broker.delete(parts, other);
assert.notEqual((await broker.run('watermarks', [parts])).code, 0);

// --- a member of a group --------------------------------------------------------------------------

const topic = unique('members');
await broker.create(`${topic}:2`);
await broker.produce([0, 1].map((partition) => ({ topic, partition, value: 'x' })));
const member = run('kcat', ['-G', group, '-q', '-c', '2', '-b', broker.servers, '-X', 'auto.offset.reset=earliest',
  '-X', 'group.instance.id=one', topic]);
assert.equal((await member).code, 0);
assert.deepEqual(await broker.committed(group), [at(0, 1, topic), at(1, 1, topic)]);

// --- faults from the mock cluster -----------------------------------------------------------------

const mock = await Mock.start(3, 'm:2');
await mock.produce([{ topic: 'm', partition: 0, value: 'a' }]);
await mock.order('request-error produce NOT_LEADER_FOR_PARTITION 2');
await mock.order('leader m 1 2');
await mock.produce([{ topic: 'm', partition: 1, value: 'b' }]);
assert.deepEqual((await mock.consume('m')).map((m) => m.value), ['a', 'b']);
await mock.order('down 2');
const lost = await mock.run('produce', [], { input: '{"topic":"m","partition":1}', settings: { 'message.timeout.ms': 500 } });
assert.equal(lost.code, 69);
await mock.order('up 2');
await mock.produce([{ topic: 'm', partition: 1, value: 'c' }]);
await assert.rejects(mock.order('down'), /down BROKER/);
await assert.rejects(mock.order('topic-error m NONSENSE'), /no such error/);
assert.equal(await mock.stop(), 0);

// --- scripts/kafka, elsewhere ---------------------------------------------------------------------

const script = path.join(root, 'scripts/kafka');
const folder = path.join(makeFolder('kafka'), 'broker of my own');
const kafka = (...args) => run(script, [...args, '--dir', folder]);
process.on('exit', () => spawnSync(script, ['down', '--dir', folder]));

// Or dead, and not yet reaped by its parent.
const isGone = (id) => {
  const file = `/proc/${String(id).trim()}/status`;
  return !fs.existsSync(file) || /^State:\s+[XZ]/m.test(fs.readFileSync(file, 'utf8'));
};

for (const bad of [['up', '--nodes', '2'], ['up', '--port', 'x'], ['up', '--nonsense', '1'], ['nonsense'], ['stop-node'],
  ['stop-node', '1'], ['down', '--port', '1']]) {
  const { code, out, err } = await kafka(...bad);
  assert.equal(code, 64, `${bad}: ${err}`);
  assert.match(err, /^kafka: /);
  assert.equal(out, '');
}
assert.equal((await kafka('status')).code, 1);
assert.equal((await kafka('down')).code, 0);

const port = String(await freePort());
const first = await kafka('up', '--port', port);
assert.equal(first.code, 0, first.err);
assert.equal(first.out, `127.0.0.1:${port}\n`);
const pid = fs.readFileSync(path.join(folder, 'node1/pid'), 'utf8');
assert.equal((await kafka('up')).out, first.out, 'up again is the same broker');
assert.equal(fs.readFileSync(path.join(folder, 'node1/pid'), 'utf8'), pid);
assert.equal((await kafka('up', '--nodes', '3')).code, 64);
assert.equal((await kafka('status')).code, 0);
const mine = new Broker(`127.0.0.1:${port}`);
await mine.create('kept');
await mine.produce([{ topic: 'kept', value: 'still here' }]);
assert.equal((await kafka('kill-node', '1')).code, 0);
assert.equal((await kafka('status')).code, 1);
assert.equal((await kafka('start-node', '1')).code, 0);
assert.deepEqual((await mine.consume('kept')).map((m) => m.value), ['still here']);
assert.equal((await kafka('freeze-node', '1')).code, 0);
assert.match((await kafka('status')).out, /frozen/);
assert.equal((await kafka('down')).code, 0);
assert.equal((await kafka('down')).code, 0);
assert.equal((await kafka('status')).code, 1);
assert.ok(isGone(pid));

// --- three nodes: one is gone, the others go on ---------------------------------------------------

const cluster = await Cluster.start();
await cluster.create('t:3:3');
await cluster.produce([0, 1, 2].map((partition) => ({ topic: 't', partition, value: 'before' })));
await cluster.killNode(2);
await cluster.produce([0, 1, 2].map((partition) => ({ topic: 't', partition, value: 'between' })));
await cluster.startNode(2);
await cluster.stopNode(1);
await cluster.produce([0, 1, 2].map((partition) => ({ topic: 't', partition, value: 'after' })));
assert.deepEqual((await cluster.consume('t')).map((m) => `${m.partition} ${m.value}`),
  [0, 1, 2].flatMap((p) => [`${p} before`, `${p} between`, `${p} after`]));
const pids = [2, 3].map((id) => cluster.pid(id));
await cluster.stop();
assert.ok(pids.every(isGone));
