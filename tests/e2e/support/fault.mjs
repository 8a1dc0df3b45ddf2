// SPDX-License-Identifier: MIT
// What the tests of bad input and faults share beside lib.mjs: raw sockets,
// commands that do not block the event loop, and a worker that may fail to
// start.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { program, until } from '../lib.mjs';

// Runs the program to its end; gives { code, signal, out, err }.
export async function run(args, options = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const said = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text) => (said.out += text));
  child.stderr.setEncoding('utf8').on('data', (text) => (said.err += text));
  const timer = setTimeout(() => child.kill('SIGKILL'), 30000);
  const [code, signal] = await once(child, 'close');
  clearTimeout(timer);
  return { code, signal, ...said };
}

// A command on the worker's configuration; the worker's handlers may be
// served by this process meanwhile.
export const command = (worker, name, ...rest) => run([name, '-c', worker.file, ...rest]);

// Cuts the answers out of what came over one connection. Every answer here
// has a Content-Length; an interim answer has none and no body.
export function parseAnswers(bytes) {
  const answers = [];
  let rest = bytes;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end < 0) return answers;
    const head = rest.subarray(0, end).toString('latin1');
    const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(head)?.[1]);
    assert.ok(status, `no status line: ${head}`);
    const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
    if (rest.length < end + 4 + length) return answers;
    const body = rest.subarray(end + 4, end + 4 + length);
    if (status >= 200) {
      answers.push({ status, head, body, closes: /^connection: *close$/im.test(head) });
    }
    rest = rest.subarray(end + 4 + length);
  }
}

const sentinel = 'GET /.sentinel HTTP/1.1\r\nHost: sentinel\r\nConnection: close\r\n\r\n';

// Sends raw bytes over a connection of their own. When the first answer
// leaves it open, one more request follows and asks for its end, so that
// whatever was taken for a second request has been answered, too. Gives the
// answers without that of the sentinel.
export async function raw(port, bytes, ms = 15000) {
  const socket = net.connect(port, '127.0.0.1');
  const parts = [];
  let asked = false;
  socket.on('error', () => {});
  socket.on('data', (part) => {
    parts.push(part);
    const answers = parseAnswers(Buffer.concat(parts));
    if (!asked && answers.length > 0 && !answers.at(-1).closes) {
      asked = true;
      socket.write(sentinel);
    }
  });
  const timer = setTimeout(() => socket.destroy(new Error('slow')), ms);
  const closed = once(socket, 'close');
  socket.write(bytes);
  await closed.catch(() => {});
  clearTimeout(timer);
  const answers = parseAnswers(Buffer.concat(parts));
  if (asked && answers.length > 1) answers.pop();
  return answers;
}

// Writes a program for an exec handler into the folder.
export function script(folder, name, text) {
  const file = path.join(folder, name);
  fs.writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}

// The value of one series of /metrics; 0 when it is not there.
export async function metric(worker, series) {
  const { body } = await worker.admin('/metrics');
  for (const line of body.toString().split('\n')) {
    if (line.startsWith(`${series} `)) return Number(line.slice(series.length + 1));
  }
  return 0;
}

export const inState = (worker, route, id, state, ms) =>
  until(`${id} to be ${state}`, async () => {
    const event = await worker.event(route, id);
    return event.state === state && event;
  }, ms);

// True while a process has this id and is no zombie.
export function isAlive(pid) {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}
