// SPDX-License-Identifier: MIT
// Signed webhooks, accepted durably, with a handler that does nothing; against
// the same HTTP library behind the same loop, which reads the request and
// answers. Each round first takes what both can do (closed: a connection sends
// its next request when the last is answered), then the latency at half of
// what onced could (open: requests have their times, kept or not).

import assert from 'node:assert/strict';
import { Worker, freePort } from '../e2e/lib.mjs';
import { digits, loops, measure, median, medians, route, say, secret, serve, watched, withFolder } from './common.mjs';

const figures = ['rate', 'p50_us', 'p99_us', 'p999_us', 'max_us'];
const warmUpMs = 500;
const kinds = [
  { name: 'accepted, new', ids: 0 },
  { name: 'accepted, repeated', ids: 1000 },
];

// A figure that was reached by refusing, or by falling behind, is none.
function check(server, run) {
  const others = Object.keys(run.status).filter((status) => status !== '200' && status !== '202');
  assert.ok(run.broken === 0 && others.length === 0 && !run.unanswered, `${server} did not take them all: ${JSON.stringify(run)}`);
}

async function load(port, { seconds, connections, ids, rate }) {
  const wanted = rate ? rate * (seconds + warmUpMs / 1000) : seconds * 250000;
  return measure('load', ['-p', port, '-u', '/accepted', '-k', secret, '-c', connections, '-i', ids, '-n', Math.ceil(wanted),
    '-t', seconds * 1000 + warmUpMs, '-w', warmUpMs, ...(rate ? ['-R', rate] : [])]);
}

async function onced(how) {
  return withFolder(async (folder) => {
    const worker = await new Worker(folder, {
      listen: { threads: loops }, log: { level: 'warn' }, routes: [route('accepted', { noop: {} })],
    }).start();
    const run = await load(worker.port, how);
    assert.equal(await worker.stop(), 0);
    return run;
  });
}

async function ceiling(how) {
  const port = await freePort();
  const stop = await serve('ceiling', port, [loops]);
  const run = await load(port, how);
  await stop();
  return run;
}

async function pair(cases, name, how) {
  const one = cases.get(`${name} ${how.connections}`) ?? { name, connections: how.connections, open: how.rate > 0, onced: [], ceiling: [] };
  cases.set(`${name} ${how.connections}`, one);
  for (const [server, run] of [['onced', onced], ['ceiling', ceiling]]) {
    const result = await watched(() => run(how));
    check(server, result);
    one[server].push(result);
  }
  return one.onced.at(-1).rate;
}

const summary = ({ name, connections, open, onced, ceiling }) => {
  const ratios = onced.map((run, i) => digits(run.rate / ceiling[i].rate, 3));
  return {
    name,
    connections,
    open,
    offered: open ? median(onced.map((run) => run.offered)) : undefined,
    onced: medians(onced, figures),
    ceiling: medians(ceiling, figures),
    ratio: open ? undefined : median(ratios),
    ratios: open ? undefined : ratios,
    others: Math.max(...onced.concat(ceiling).map((run) => run.others)),
    runs: { onced, ceiling },
  };
};

export async function ingest({ rounds, seconds, connections }) {
  const cases = new Map();
  for (let round = 1; round <= rounds; round++) {
    for (const n of connections) {
      say(`ingest: round ${round} of ${rounds}, ${n} connections`);
      for (const { name, ids } of kinds) {
        const rate = await pair(cases, name, { seconds, connections: n, ids });
        await pair(cases, `${name}, at half the rate`, { seconds, connections: n, ids, rate: Math.floor(rate / 2) });
      }
    }
  }
  return { rounds, seconds, cases: [...cases.values()].map(summary) };
}
