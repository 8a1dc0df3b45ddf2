// SPDX-License-Identifier: MIT
// What the benchmarks share: the machine and who else uses it, medians, the
// programs that are measured, and the JSON file of each part.

import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { program, root } from '../e2e/lib.mjs';

export const folder = path.join(root, 'build/bench');
// The tools stand beside the program: ONCED=… measures another build.
export const tool = (name) => path.join(path.dirname(program), 'bench', `bench_${name}`);
export const cores = os.availableParallelism();
export const loops = Math.min(cores, 4); // as the worker chooses them
export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export const say = (text) => process.stderr.write(`\x1b[1m== ${text}\x1b[0m\n`);

const execute = promisify(execFile);

// What a tool prints, one line of JSON.
export async function measure(name, args) {
  const { stdout } = await execute(tool(name), args.map(String), { maxBuffer: 1 << 20 });
  return JSON.parse(stdout);
}

// --- figures ---------------------------------------------------------------

export function median(values) {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

export const digits = (value, n) => Number(value.toFixed(n));

// The median of each of the named figures over the runs.
export function medians(runs, names) {
  return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))]));
}

// --- the machine -----------------------------------------------------------

const read = (file) => fs.readFileSync(file, 'utf8');
const ticksPerSecond = 100; // of /proc, on every Linux that has it

// Seconds of processor time: all there was but interrupts, and our own with
// that of the processes `pids`.
function used(pids) {
  const [user, nice, system, , , , , steal] = read('/proc/stat').split('\n')[0].trim().split(/\s+/).slice(1).map(Number);
  const own = ['self', ...pids].flatMap((pid) => read(`/proc/${pid}/stat`).replace(/.*\) /, '').split(' ').slice(11, 15).map(Number));
  return { all: (user + nice + system + steal) / ticksPerSecond, own: own.reduce((a, b) => a + b) / ticksPerSecond, at: performance.now() / 1000 };
}

// Runs `work`, and gives what it gives with `others`: the processors that
// programs which are none of ours kept busy meanwhile. What `work` starts must
// have ended by its end; what serves it, and lives on, are the processes `pids`.
export async function watched(work, pids = []) {
  const before = used(pids);
  const result = await work();
  const after = used(pids);
  const others = (after.all - before.all - (after.own - before.own)) / (after.at - before.at);
  return { ...result, others: digits(Math.max(0, others), 2) };
}

// From here on what others take shows in the ratios.
export const isBusy = (others) => others > 0.1 * cores;

export async function describeMachine() {
  const [, cpu] = /^model name\s*: (.*)$/m.exec(read('/proc/cpuinfo')) ?? [, 'unknown'];
  const { stdout: type } = await execute('findmnt', ['-no', 'FSTYPE', '-T', folder]);
  return {
    cores,
    cpu,
    memory_gib: digits(os.totalmem() / 2 ** 30, 1),
    kernel: os.release(),
    filesystem: type.trim(),
    fdatasync_p50_us: await measure('disk', [folder]),
    load_before: Number(read('/proc/loadavg').split(' ')[0]),
  };
}

// --- what is run -----------------------------------------------------------

// A folder on the disk that is measured, gone afterwards.
export async function withFolder(work) {
  const name = fs.mkdtempSync(path.join(folder, 'run.'));
  try {
    return await work(name);
  } finally {
    fs.rmSync(name, { recursive: true, force: true });
  }
}

const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

// Starts a tool that serves a port; gives the function that ends it.
export async function serve(name, port, args) {
  const child = spawn(tool(name), [port, ...args].map(String), { stdio: ['ignore', 'inherit', 'inherit'] });
  children.add(child);
  const exited = once(child, 'exit').then(() => children.delete(child));
  for (let i = 0; i < 200; i++) {
    const socket = net.connect(port, '127.0.0.1');
    const up = await once(socket, 'connect').then(() => true, () => false);
    socket.destroy();
    if (up) break;
    await sleep(20);
  }
  return async () => {
    child.kill('SIGTERM');
    await exited;
  };
}

export const secret = 'bench';

// A route of signed webhooks as the load tool sends them.
export const route = (name, handler) => ({
  name,
  source: { http: { path: `/${name}` } },
  verify: { scheme: 'github', secrets: [{ value: secret }] },
  handler,
});

// --- the file --------------------------------------------------------------

export async function version() {
  return (await execute(program, ['version'])).stdout.trim();
}

export function write(name, value) {
  fs.writeFileSync(path.join(folder, `${name}.json`), `${JSON.stringify(value, null, 1)}\n`);
}

// Undefined where the part was not run yet.
export function load(name) {
  const file = path.join(folder, `${name}.json`);
  const result = fs.existsSync(file) ? JSON.parse(read(file)) : {};
  return result.part === name ? result : undefined;
}
