// SPDX-License-Identifier: MIT
// The store behind the real engine, without sources and handlers, against LMDB
// with every id put straight into its tree; its size, its start, and one
// ordering key with a long queue. The stores that are filled for it stay, so
// that the next run need not fill them.

import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { folder, say, tool, watched, withFolder } from './common.mjs';

const execute = promisify(execFile);

async function lines(measure, where, options) {
  say(`store: ${measure} ${options.join(' ')}`);
  const { stdout } = await execute(tool('store'), [...options, measure, where], { maxBuffer: 16 << 20 });
  return stdout.trim().split('\n').map((line) => JSON.parse(line));
}

export async function store({ full, rounds }) {
  const ids = full ? '100000,1000000,10000000' : '100000,1000000';
  // Without a number of rounds it goes on past the sealing of a generation.
  const often = full ? [] : ['-r', String(rounds)];
  const filled = path.join(folder, 'store');
  fs.mkdirSync(filled, { recursive: true });
  return watched(async () => ({
    rate: await lines('rate', filled, ['-i', ids, ...often]),
    start: await lines('start', filled, ['-i', ids, '-r', String(rounds)]),
    order: await withFolder((fresh) => lines('order', fresh, [])),
  }));
}
