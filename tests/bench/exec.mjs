// SPDX-License-Identifier: MIT
// Events through a program each, against spawning the same program with the
// same pipes and nothing else. The events are there before the clock starts,
// on a paused route, so that taking them in is no part of it.

import assert from 'node:assert/strict';
import { Worker } from '../e2e/lib.mjs';
import { cores, digits, measure, median, route, say, secret, sleep, tool, watched, withFolder } from './common.mjs';

const warmUpMs = 500;
const events = (seconds) => 4000 * (seconds + 2); // more than can be run
const programs = [
  { name: '/bin/true', path: '/bin/true', concurrency: 2 * cores },
  { name: '/bin/true', path: '/bin/true', concurrency: 4 * cores },
  { name: 'a program without libraries', path: tool('exec_program'), concurrency: 4 * cores },
];

async function settled(worker) {
  const { body } = await worker.admin('/metrics');
  const [, n] = /^onced_settled_total\{route="exec",state="SUCCEEDED"[^}]*\} (\d+)$/m.exec(body.toString()) ?? [, 0];
  return { n: Number(n), at: performance.now() };
}

async function onced({ path, concurrency }, seconds) {
  return withFolder(async (folder) => {
    const worker = await new Worker(folder, {
      log: { level: 'warn' }, routes: [route('exec', { exec: { command: [path], concurrency } })],
    }).start();
    assert.equal((await worker.admin('/v1/routes/exec/pause', 'POST')).status, 200);
    const sent = await measure('load', ['-p', worker.port, '-u', '/exec', '-k', secret, '-n', events(seconds), '-t', 60000, '-w', 0]);
    assert.equal(sent.status['202'], events(seconds));
    assert.equal((await worker.admin('/v1/routes/exec/resume', 'POST')).status, 200);
    await sleep(warmUpMs);
    const from = await settled(worker);
    await sleep(seconds * 1000);
    const to = await settled(worker);
    const { pending, dead, failed } = await worker.counts('exec');
    assert.ok(pending > 0 && dead + failed === 0, 'events were left, and none failed');
    assert.equal(await worker.stop(), 0);
    return { rate: digits(((to.n - from.n) * 1000) / (to.at - from.at), 1) };
  });
}

const alone = ({ path, concurrency }, seconds) => measure('exec_alone', [concurrency, seconds * 1000, warmUpMs, path]);

export async function exec({ rounds, seconds }) {
  const cases = [];
  for (const program of programs) {
    const runs = { onced: [], alone: [] };
    for (let round = 1; round <= rounds; round++) {
      say(`exec: round ${round} of ${rounds}, ${program.name}, ${program.concurrency} at a time`);
      runs.onced.push(await watched(() => onced(program, seconds)));
      runs.alone.push(await watched(() => alone(program, seconds)));
    }
    const ratios = runs.onced.map((run, i) => digits(run.rate / runs.alone[i].rate, 3));
    cases.push({
      name: program.name,
      concurrency: program.concurrency,
      onced: { rate: median(runs.onced.map((run) => run.rate)) },
      alone: { rate: median(runs.alone.map((run) => run.rate)) },
      ratio: median(ratios),
      ratios,
      others: Math.max(...Object.values(runs).flat().map((run) => run.others)),
      runs,
    });
  }
  return { rounds, seconds, cases };
}
