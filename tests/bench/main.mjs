// SPDX-License-Identifier: MIT
// scripts/bench, behind the build: runs the parts that are named, keeps a JSON
// file of each, and writes the page.

import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../e2e/lib.mjs';
import { describeMachine, folder, say, version, write } from './common.mjs';
import { exec } from './exec.mjs';
import { idle } from './idle.mjs';
import { ingest } from './ingest.mjs';
import { kafka } from './kafka.mjs';
import { report } from './report.mjs';
import { store } from './store.mjs';

const parts = { ingest, exec, idle, store, kafka };
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', short: 'r', default: '3' },
    seconds: { type: 'string', short: 't', default: '4' },
    connections: { type: 'string', short: 'c', default: '64 256' },
    full: { type: 'boolean', default: false },
  },
});
const options = {
  rounds: Number(values.rounds),
  seconds: Number(values.seconds),
  connections: values.connections.split(' ').map(Number),
  idleSeconds: 20,
  full: values.full,
};
const [what = 'all'] = positionals;
const chosen = { all: Object.keys(parts), report: [] }[what] ?? [what];

fs.mkdirSync(folder, { recursive: true });
for (const name of chosen) {
  const machine = await describeMachine();
  const head = { part: name, command: `scripts/bench ${process.argv.slice(2).join(' ')}`.trim(), version: await version(), at: new Date().toISOString(), machine };
  write(name, { ...head, ...(await parts[name](options)), load_after: Number(fs.readFileSync('/proc/loadavg', 'utf8').split(' ')[0]) });
}
const page = report();
say(`written: ${path.relative(root, page)}`);
process.stdout.write(fs.readFileSync(page, 'utf8'));
