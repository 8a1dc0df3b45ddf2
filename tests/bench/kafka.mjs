// SPDX-License-Identifier: MIT
// Messages of a topic of 8 partitions, deduplicated and settled: with a handler
// that does nothing, and with one over HTTP; against librdkafka alone, which
// takes the same messages and drops them. Then keys in order, where each key
// waits for its events: against so many places, never empty.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Worker, freePort, root } from '../e2e/lib.mjs';
import { digits, folder, loops, measure, median, say, serve, sleep, watched, withFolder } from './common.mjs';

const partitions = 8;
const bytes = 200;
const delayMs = 2.5; // of 0 to 5, at the mean
const kinds = [
  { name: 'noop', topic: 'noop', messages: 1000000, keys: 0, order: 'none', handler: () => ({ noop: { concurrency: 8192 } }) },
  {
    name: 'http', topic: 'http', messages: 100000, keys: 0, order: 'none',
    handler: (port) => ({ http: { url: `http://127.0.0.1:${port}/`, concurrency: 64 } }),
  },
  ...[[16, 20000], [256, 150000]].map(([places, messages]) => ({
    name: `1,000 keys in order, 0–5 ms, ${places} at a time`, topic: `order-${places}`, messages, keys: 1000, places, order: 'kafka:key',
    handler: () => ({ noop: { delay: '0ms..5ms', concurrency: places } }),
  })),
];

const script = (...args) => execFileSync(path.join(root, 'scripts/kafka'), [...args, '--dir', path.join(folder, 'kafka')], { stdio: ['ignore', 'pipe', 'inherit'] });

async function settled(worker) {
  const { body } = await worker.admin('/metrics');
  const [, n] = /^onced_settled_total\{route="bench",state="SUCCEEDED"[^}]*\} (\d+)$/m.exec(body.toString()) ?? [, 0];
  return { n: Number(n), at: performance.now() };
}

// From the first look that saw an event settled: joining the group is no part
// of it. The whole run, from the start of the process, stands beside it.
async function rateOf(worker, messages, startedAt) {
  let first, now;
  do {
    await sleep(20);
    now = await settled(worker);
    if (!first && now.n > 0) first = now;
  } while (now.n < messages);
  return {
    rate: Math.round(((now.n - first.n) * 1000) / (now.at - first.at)),
    whole_rate: Math.round((now.n * 1000) / (now.at - startedAt)),
  };
}

async function onced(servers, kind, group) {
  const port = await freePort();
  const stop = kind.name === 'http' ? await serve('ceiling', port, [loops]) : async () => {};
  const result = await withFolder(async (dir) => {
    const worker = new Worker(dir, {
      log: { level: 'warn' },
      kafka: { 'bootstrap.servers': servers },
      routes: [{
        name: 'bench', source: { kafka: { topics: [kind.topic], group } }, id: 'json:/id', order_by: kind.order, handler: kind.handler(port),
      }],
    });
    const startedAt = performance.now();
    await worker.start();
    const run = await rateOf(worker, kind.messages, startedAt);
    assert.equal(await worker.stop(), 0);
    return run;
  });
  await stop();
  const { committed } = await measure('kafka', ['committed', servers, kind.topic, partitions, group]);
  assert.equal(committed, kind.messages, 'all offsets are committed');
  return result;
}

const alone = (servers, kind, group) => measure('kafka', ['read', servers, kind.topic, group, kind.messages]);

async function fill(servers) {
  for (const { topic, messages, keys } of kinds) {
    say(`kafka: ${messages} messages into ${topic}`);
    await measure('kafka', ['fill', servers, topic, partitions, messages, bytes, keys]);
  }
}

function summary({ name, messages, places }, { onced, alone }) {
  const most = (run, i) => (places ? (places * 1000) / delayMs : alone[i].rate);
  const ratios = onced.map((run, i) => digits(run.rate / most(run, i), 3));
  return {
    name,
    messages,
    places,
    onced: { rate: median(onced.map((run) => run.rate)), whole_rate: median(onced.map((run) => run.whole_rate)) },
    most: median(onced.map(most)),
    ratio: median(ratios),
    ratios,
    others: Math.max(...onced.concat(alone).map((run) => run.others)),
    runs: { onced, alone },
  };
}

export async function kafka({ rounds }) {
  const runs = kinds.map(() => ({ onced: [], alone: [] }));
  script('up', '--port', '0', '--fresh');
  try {
    const servers = fs.readFileSync(path.join(folder, 'kafka/bootstrap'), 'utf8').trim();
    const broker = [Number(fs.readFileSync(path.join(folder, 'kafka/node1/pid'), 'utf8'))];
    await fill(servers);
    for (let round = 1; round <= rounds; round++) {
      for (const [i, kind] of kinds.entries()) {
        say(`kafka: round ${round} of ${rounds}, ${kind.name}`);
        runs[i].onced.push(await watched(() => onced(servers, kind, `onced-${round}-${i}`), broker));
        if (!kind.places) runs[i].alone.push(await watched(() => alone(servers, kind, `alone-${round}-${i}`), broker));
      }
    }
  } finally {
    script('down');
  }
  return { rounds, cases: kinds.map((kind, i) => summary(kind, runs[i])) };
}
