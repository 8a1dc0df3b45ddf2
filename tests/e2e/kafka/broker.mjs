// SPDX-License-Identifier: MIT
// What the tests with Kafka share beside lib.mjs: the broker that all of them
// use, clusters of their own, librdkafka's mock cluster, and kafka_tool to do
// things to each of the three (tests/kafka/tool/tool.h).

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import readline from 'node:readline';
import { root, until } from '../lib.mjs';

const folder = process.env.KAFKA_FOLDER ?? path.join(root, 'var/kafka');
const tool = process.env.KAFKA_TOOL ?? path.join(root, 'build/dev/tests/kafka_tool');
const script = path.join(root, 'scripts/kafka');

// A process that does not stay when the test ends, however it does: both of
// the tool's that go on by themselves end with their stdin.
const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

function start(program, args) {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  children.add(child);
  child.said = { out: '', err: '' };
  child.stdin.on('error', () => {}); // it ended first: its code tells
  child.stderr.setEncoding('utf8').on('data', (text) => (child.said.err += text));
  child.ended = once(child, 'close').then(([code, signal]) => {
    children.delete(child);
    return code ?? signal;
  });
  return child;
}

// Runs a program to its end; gives { code, out, err }.
export async function run(program, args, input = '') {
  const child = start(program, args);
  child.stdout.setEncoding('utf8').on('data', (text) => (child.said.out += text));
  child.stdin.end(input);
  return { code: await child.ended, ...child.said };
}

let names = 0;
// A name that no other test uses, for a topic or a group.
export const unique = (prefix) => `${prefix}-${process.pid}-${++names}`;

// The bytes of a consumed message's `key` or `value`: a Buffer, or null.
export function bytesOf(message, name) {
  const encoded = message[`${name}_base64`];
  if (encoded !== undefined) return Buffer.from(encoded, 'base64');
  return message[name] === null ? null : Buffer.from(message[name]);
}

// Its headers as [name, Buffer or null] pairs.
export const headersOf = (message) => message.headers.map(([name, value]) => [name,
  value === null ? null : typeof value === 'string' ? Buffer.from(value) : Buffer.from(value.base64, 'base64')]);

// The first value of that name as text, or undefined.
export const headerOf = (message, name) => headersOf(message).find(([n]) => n === name)?.[1]?.toString();

// A message for the tool: Buffers stand in base64.
function encode({ key, value, headers, ...rest }) {
  const line = { ...rest };
  for (const [name, part] of Object.entries({ key, value })) {
    if (Buffer.isBuffer(part)) line[`${name}_base64`] = part.toString('base64');
    else if (part !== undefined) line[name] = part;
  }
  if (headers) line.headers = headers.map(([n, v]) => [n, Buffer.isBuffer(v) ? { base64: v.toString('base64') } : v]);
  return JSON.stringify(line);
}

const position = ({ topic, partition, offset }) => `${topic}:${partition}:${offset}`;
const byPosition = (a, b) => a.topic.localeCompare(b.topic) || a.partition - b.partition || a.offset - b.offset;

// One broker or more at `servers`.
export class Broker {
  constructor(servers) {
    this.servers = servers;
  }

  // The one that ctest starts for all tests; by hand: scripts/kafka up.
  static shared() {
    const file = path.join(folder, 'bootstrap');
    assert.ok(fs.existsSync(file), `no broker in ${folder}: scripts/kafka up starts one`);
    return new Broker(fs.readFileSync(file, 'utf8').trim());
  }

  arguments(command, args, settings = {}) {
    const options = Object.entries(settings).flatMap(([name, value]) => ['-X', `${name}=${value}`]);
    return ['-b', this.servers, ...options, command, ...args.map(String)];
  }

  // Runs a command of kafka_tool; gives { code, out, err }.
  run(command, args = [], { input, settings } = {}) {
    return run(tool, this.arguments(command, args, settings), input);
  }

  // The same, which must succeed; gives its lines, parsed.
  async do(command, args = [], more = {}) {
    const { code, out, err } = await this.run(command, args, more);
    assert.equal(code, 0, `kafka_tool ${command} ${args.join(' ')}: ${code} ${err}`);
    return out.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  }

  // Topics are 'name', 'name:partitions', 'name:partitions:replication', or
  // { name, partitions, replication, config }; all in one call.
  create(...topics) {
    return this.do('create', topics.flatMap((topic) => {
      if (typeof topic === 'string') return [topic];
      const { name, partitions = 1, replication = -1, config = {} } = topic;
      return [`${name}:${partitions}:${replication}`, ...Object.entries(config).map(([n, v]) => `${n}=${v}`)];
    }));
  }

  delete(...names) {
    return this.do('delete', names);
  }

  // Under the same name, with another id, from offset 0.
  async recreate(topic) {
    await this.delete((topic.name ?? topic).split(':')[0]);
    return this.create(topic);
  }

  addPartitions(name, total) {
    return this.do('add-partitions', [`${name}:${total}`]);
  }

  // Messages below these { topic, partition, offset or 'end' }.
  async deleteRecords(...positions) {
    return (await this.do('delete-records', positions.map(position)))[0];
  }

  // Messages { topic, partition, key, value, headers, timestamp }; key, value
  // and header values are text, Buffer or null. Gives [{ topic, partition,
  // offset }] in the same order, once all are on all in-sync replicas.
  async produce(messages, settings) {
    const reports = await this.do('produce', [], { input: messages.map((m) => `${encode(m)}\n`).join(''), settings });
    return reports.sort((a, b) => a.n - b.n).map(({ n, ...at }) => at);
  }

  // The same for many: gives how many.
  async produceMany(messages, settings) {
    const input = messages.map((m) => `${encode(m)}\n`).join('');
    return (await this.do('produce', ['quiet'], { input, settings }))[0].delivered;
  }

  // All messages of the topics, by topic, partition and offset.
  async consume(topics, settings) {
    return (await this.do('consume', [topics].flat(), { settings })).sort(byPosition);
  }

  // [{ topic, partition, low, high }]
  watermarks(...topics) {
    return this.do('watermarks', topics);
  }

  // [{ topic, partition, offset }] of a group.
  async committed(group) {
    return (await this.do('committed', [group]))[0].offsets.sort(byPosition);
  }

  // Asks again and again: `lines` grows by { at_wall_ms, group, offsets } or,
  // while no broker answers, { at_wall_ms, group, error }.
  watchCommitted(group, everyMs = 100) {
    return new Watch(this.arguments('committed', [group, everyMs], { 'socket.timeout.ms': 2000 }));
  }

  // [{ group, state }]
  groups() {
    return this.do('groups');
  }

  // { group, state, assignor, members: [{ client, member, instance,
  // partitions: [{ topic, partition }] }] }
  async describe(group) {
    return (await this.do('describe', [group]))[0];
  }

  // Of a group without members; offsets may be 'beginning' and 'end'.
  async setOffsets(group, ...positions) {
    return (await this.do('set-offsets', [group, ...positions.map(position)]))[0];
  }

  deleteGroups(...groups) {
    return this.do('delete-groups', groups);
  }
}

class Watch {
  constructor(args) {
    this.lines = [];
    this.child = start(tool, args);
    readline.createInterface({ input: this.child.stdout }).on('line', (line) => this.lines.push(JSON.parse(line)));
  }

  // Gives all lines.
  async stop() {
    this.child.stdin.end();
    await this.child.ended;
    return this.lines;
  }
}

// A cluster that the test may break, of one node or three. It lives below the
// shared broker's folder: what stops that one stops it, too, where the test
// was killed.
export class Cluster extends Broker {
  static async start({ nodes = 3, port = 0 } = {}) {
    const cluster = new Cluster('');
    cluster.folder = path.join(folder, unique('cluster'));
    process.on('exit', (code) => {
      spawnSync(script, ['down', '--dir', cluster.folder]);
      if (code === 0) fs.rmSync(cluster.folder, { recursive: true, force: true });
    });
    cluster.servers = (await cluster.script('up', '--nodes', nodes, '--port', port)).trim();
    return cluster;
  }

  // Runs scripts/kafka on it; gives what it printed.
  async script(...args) {
    const { code, out, err } = await run(script, [...args.map(String), '--dir', this.folder]);
    assert.equal(code, 0, `scripts/kafka ${args.join(' ')}: ${out}${err}`);
    return out;
  }

  // In order. Every one of these waits until it is so.
  stopNode(id) {
    return this.script('stop-node', id);
  }

  startNode(id) {
    return this.script('start-node', id);
  }

  killNode(id) {
    return this.script('kill-node', id);
  }

  freezeNode(id) {
    return this.script('freeze-node', id);
  }

  thawNode(id) {
    return this.script('thaw-node', id);
  }

  pid(id) {
    return Number(fs.readFileSync(path.join(this.folder, `node${id}`, 'pid'), 'utf8'));
  }

  stop() {
    return this.script('down');
  }
}

// librdkafka's mock cluster, a process of its own.
export class Mock extends Broker {
  // Topics are 'name:partitions'.
  static async start(brokers = 3, ...topics) {
    const mock = new Mock('');
    mock.child = start(tool, ['mock', String(brokers), ...topics]);
    mock.answers = [];
    readline.createInterface({ input: mock.child.stdout }).on('line', (line) => mock.answers.push(line));
    mock.servers = await mock.#answer();
    return mock;
  }

  #answer() {
    return until('the mock cluster to answer', () => {
      assert.equal(this.child.exitCode, null, `the mock cluster ended: ${this.child.said.err}`);
      return this.answers.shift();
    });
  }

  // A command of tests/kafka/tool/mock.c: 'down 2', 'request-error commit
  // NOT_COORDINATOR 3', … One at a time.
  async order(line) {
    this.child.stdin.write(`${line}\n`);
    assert.equal(await this.#answer(), 'ok', line);
  }

  freeze() {
    this.child.kill('SIGSTOP');
  }

  thaw() {
    this.child.kill('SIGCONT');
  }

  async stop() {
    this.child.kill('SIGCONT');
    this.child.stdin.end();
    return this.child.ended;
  }
}
