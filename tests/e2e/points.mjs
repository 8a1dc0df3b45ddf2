// SPDX-License-Identifier: MIT
// kill -9 at every point that base/mark.def names, ROUNDS times each, at a
// hit of it that the seed draws; on the points of recovery twice in a row.
// Whatever the point: nothing that was acknowledged is lost, no attempt is
// made that a crash, a recorded retry or an order does not explain, and the
// store verifies.
//
//     node points.mjs [ROUNDS] [SEED] [POINT]

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { makeFolder, parallel, program, root } from './lib.mjs';
import { Load, dice } from './support/load.mjs';

const rounds = Number(process.argv[2] ?? 2);
const seed = Number(process.argv[3] ?? Date.now() % 1e9);
const only = process.argv[4];
const width = 3; // rounds at a time
const retentionMs = 1000; // where the store's upkeep is to be reached

const table = fs.readFileSync(path.join(root, 'src/base/mark.def'), 'utf8');
const points = [...table.matchAll(/^MARK_DEF\(\w+,\s+"([a-z0-9-]+)",\s+MARK_POINT,/gm)].map(([, name]) => name);
assert.ok(points.length >= 24, `only ${points.length} points in src/base/mark.def`);

const marked = spawnSync(program, ['version'], { env: { ONCED_KILL_AT: 'nowhere:1' } }).status === 64;
assert.ok(marked, `${program} has no marks: this test needs a build with ONCED_MARKS, such as build/dev`);

// How a round comes to its point, and up to which hit of it.
//   load     under load
//   upkeep   under load, with a memory so short that generations go
//   restart  in a start after a crash under load, and in the next one
//   stop     in an end in order, under load
//   empty    in a start on an empty folder
const ways = {
  'exec-before-spawn': ['load', 15],
  'exec-after-spawn': ['load', 15],
  'exec-ended': ['load', 15],
  'dead-before-commit': ['load', 5],
  'dead-after-commit': ['load', 5],
  'replay-before-commit': ['load', 3],
  'replay-after-commit': ['load', 3],
  'generation-closed': ['upkeep', 4],
  'seal-step': ['upkeep', 6],
  'seal-done': ['upkeep', 4],
  'record-carried': ['upkeep', 6],
  'generation-dropped': ['upkeep', 3],
  'slice-dropped': ['upkeep', 3],
  'upkeep-committed': ['upkeep', 20],
  'store-before-rename': ['empty', 1],
  'store-after-rename': ['empty', 1],
  'store-synced': ['restart', 1],
  'recovery-begun': ['restart', 1],
  'recovery-before-commit': ['restart', 1],
  'recovery-after-commit': ['restart', 1],
  'recovery-of-route': ['restart', 3],
  'shutdown-begun': ['stop', 1],
  'shutdown-drained': ['stop', 1],
  'store-before-close': ['stop', 1],
  'store-closed': ['stop', 1],
};
const wayOf = (point) => ways[point] ?? ['load', 40];
assert.deepEqual(Object.keys(ways).filter((point) => !points.includes(point)), [], 'what is named here exists');

// --- one round ------------------------------------------------------------------------------------

const hits = new Map(points.map((point) => [point, 0]));
const totals = { meant: 0, killed: 0, events: 0, attempts: 0 };

// Runs a process until it has killed itself there; false when it does not
// come there.
async function meet(load, way, kill) {
  const end = Date.now() + 20000;
  const enough = load.events.size + 10 + Math.floor(load.random() * 60);
  const inTime = () => Date.now() < end;
  let told = false;
  await load.launch({ ONCED_KILL_AT: kill });
  if (await load.ready() && way !== 'restart' && way !== 'empty') {
    await load.run(() => {
      if (way === 'stop' && !told && load.events.size > enough) told = load.worker.child.kill('SIGTERM');
      return inTime();
    });
  }
  const here = load.worker.child?.kill('SIGKILL') !== true;
  return await load.ended() === 'SIGKILL' && here;
}

async function crash(load) {
  const hit = 5 + Math.floor(load.random() * 20);
  assert.ok(await meet(load, 'load', `claim-after-commit:${hit}`));
}

async function playRound(point, load) {
  const [way, upTo] = wayOf(point);
  if (way === 'restart') await crash(load);
  for (let i = 0; i < (way === 'restart' ? 2 : 1); i++) {
    const kill = `${point}:${1 + Math.floor(load.random() * upTo)}`;
    const met = await meet(load, way, kill);
    totals.meant++;
    totals.killed += met;
    hits.set(point, hits.get(point) + met);
    if (!met) console.log(`did not come to ${kill}`);
  }
  const diedAt = Date.now();
  await load.heal();
  await load.check(diedAt);
  totals.events += [...load.events.values()].filter((event) => event.acked).length;
  totals.attempts += load.lines.filter((line) => line.l === 'inv').length;
}

// --- all of them ------------------------------------------------------------------------------------

const folder = makeFolder('points');
const failed = [];
const chosen = points.filter((point) => only === undefined || point === only);
assert.ok(chosen.length > 0, `no such point: ${only}`);
console.log(`${chosen.length} points, ${rounds} rounds each, seed ${seed}`);

await parallel(width, chosen.flatMap((point) => Array.from({ length: rounds }, (_, number) => async () => {
  const name = `${point}.${number}`;
  const load = new Load(path.join(folder, name), dice(`${seed} ${name}`), wayOf(point)[0] === 'upkeep' ? { retentionMs } : {});
  try {
    await load.open();
    await playRound(point, load);
    fs.rmSync(load.folder, { recursive: true });
  } catch (error) {
    failed.push(name);
    console.log(`${name}: ${error.stack}`);
  } finally {
    await load.close();
  }
})));
assert.deepEqual(failed, []);
for (const point of chosen) assert.ok(hits.get(point) > 0, `${point} was never come to`);
assert.ok(totals.killed >= totals.meant * 0.95, `only ${totals.killed} of ${totals.meant} kills came to their point`);
console.log(`${totals.killed} of ${totals.meant} kills at their point: ${totals.events} acknowledged events, 0 lost; ` +
  `${totals.attempts} attempts, 0 unexplained`);
process.exit(0);
