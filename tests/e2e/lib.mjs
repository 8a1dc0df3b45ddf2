// SPDX-License-Identifier: MIT
// What the end-to-end tests share: a folder of their own, a worker of their
// own, a handler that writes a ledger, and the admin API. No dependency.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHmac } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { once } from 'node:events';

export const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../..');
export const program = process.env.ONCED ?? path.join(root, 'build/release/onced');

// A fresh folder; removed when the process ends well, kept (and named) when
// it does not.
export function makeFolder(name) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), `onced-${name}-`));
  process.on('exit', (code) => {
    if (code === 0) fs.rmSync(folder, { recursive: true, force: true });
    else process.stderr.write(`kept: ${folder}\n`);
  });
  return folder;
}

// Below the ports that the kernel gives to clients, which come and go.
export async function freePort() {
  for (;;) {
    const server = net.createServer().listen(20000 + Math.floor(Math.random() * 12000), '127.0.0.1');
    const isFree = await once(server, 'listening').then(() => true, () => false);
    if (!isFree) continue;
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
  }
}

// Polls until `condition` gives something; fails with `what` after `ms`.
export async function until(what, condition, ms = 30000) {
  const end = Date.now() + ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    assert.ok(Date.now() < end, `waited ${ms} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// One HTTP request; resolves with { status, headers, body }, rejects when the
// connection breaks.
export function request(options, body = '') {
  return new Promise((resolve, reject) => {
    const req = http.request(options, (res) => {
      const parts = [];
      res.on('data', (part) => parts.push(part));
      res.on('error', reject);
      res.on('end', () => resolve({ status: res.statusCode, headers: res.headers, body: Buffer.concat(parts) }));
    });
    req.on('error', reject);
    req.on('timeout', () => req.destroy(new Error(`no answer in ${options.timeout} ms`)));
    req.end(body);
  });
}

// The handler's side: every invocation is written down before it is answered.
// `answer(invocation)` gives a status, or { status, headers, body }, or null
// for a connection that is cut.
export class Handler {
  constructor(answer = () => 200) {
    this.answer = answer;
    this.invocations = [];
    this.server = http.createServer((req, res) => this.#invoke(req, res));
    this.server.keepAliveTimeout = 60000;
  }

  async listen(port = 0) {
    this.server.listen(port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
    return this;
  }

  async close() {
    this.server.close();
    this.server.closeAllConnections();
    await once(this.server, 'close');
  }

  of(id) {
    return this.invocations.filter((i) => i.id === id);
  }

  async #invoke(req, res) {
    const parts = [];
    try {
      for await (const part of req) parts.push(part);
    } catch {
      return;
    }
    const invocation = {
      id: req.headers['onced-event-id'],
      key: req.headers['idempotency-key'],
      attempt: Number(req.headers['onced-attempt']),
      method: req.method,
      url: req.url,
      headers: req.headers,
      body: Buffer.concat(parts),
    };
    this.invocations.push(invocation);
    const answer = await this.answer(invocation);
    if (answer === null) {
      req.socket.destroy();
      return;
    }
    const { status, headers = {}, body = '' } = typeof answer === 'number' ? { status: answer } : answer;
    res.writeHead(status, headers).end(body);
  }
}

// A test that fails leaves no worker behind.
const children = new Set();
process.on('exit', () => children.forEach((child) => child.kill('SIGKILL')));

export class Worker {
  // `config` without store, listen and admin, which are filled in.
  constructor(folder, config, { descriptors } = {}) {
    this.commandLine = descriptors ? ['sh', '-c', `ulimit -n ${descriptors}; exec "$@"`, 'sh', program] : [program];
    this.folder = folder;
    this.config = config;
    this.file = path.join(folder, 'onced.json');
    this.socket = path.join(folder, 'admin.sock');
    this.logFile = path.join(folder, 'log');
  }

  // Starts the process, with more in its environment, and does not wait.
  async launch(environment = {}) {
    this.port ??= await freePort();
    const config = {
      ...this.config,
      store: { path: 'store', ...this.config.store },
      listen: { address: `127.0.0.1:${this.port}`, ...this.config.listen },
      admin: { socket: 'admin.sock', ...this.config.admin },
    };
    fs.writeFileSync(this.file, JSON.stringify(config, null, 2));
    const log = fs.openSync(this.logFile, 'a');
    const [name, ...words] = this.commandLine;
    this.child = spawn(name, [...words, 'run', '-c', this.file], {
      stdio: ['ignore', log, log], env: { ...process.env, ...environment },
    });
    fs.closeSync(log);
    const { child } = this;
    children.add(child);
    this.exited = once(child, 'exit').then(([code, signal]) => {
      children.delete(child);
      this.child = null;
      return code ?? signal;
    });
  }

  async start() {
    await this.launch();
    await until('the worker to be ready', async () => {
      assert.ok(this.child, `the worker ended: ${this.log()}`);
      return (await this.admin('/readyz').catch(() => null))?.status === 200;
    });
    return this;
  }

  log() {
    return fs.readFileSync(this.logFile, 'utf8');
  }

  // Ends it in order; gives the exit code.
  async stop() {
    this.child?.kill('SIGTERM');
    const code = await this.exited;
    assert.doesNotMatch(this.log(), /ERROR: \w+Sanitizer|runtime error:|check failed/);
    return code;
  }

  async kill() {
    this.child?.kill('SIGKILL');
    return this.exited;
  }

  admin(target, method = 'GET', body = '') {
    return request({ socketPath: this.socket, path: target, method, headers: { Host: 'admin' } }, body);
  }

  async json(target) {
    const { status, body } = await this.admin(target);
    assert.equal(status, 200, `${target}: ${status} ${body}`);
    return JSON.parse(body);
  }

  event(route, id) {
    return this.json(`/v1/events/${encodeURIComponent(route)}/${encodeURIComponent(id)}`);
  }

  async counts(route) {
    return (await this.json('/v1/status')).routes.find((r) => r.name === route);
  }

  async settled(route, ms = 60000) {
    return until(`${route} to settle`, async () => {
      const counts = await this.counts(route);
      return counts.pending + counts.running + counts.uncertain === 0 && counts;
    }, ms);
  }

  post(target, headers, body, agent) {
    return request({ host: '127.0.0.1', port: this.port, path: target, method: 'POST', headers, agent }, body);
  }

  // Runs a command of the program; gives { code, out, err }. The handler, in
  // this process, goes on meanwhile.
  async command(name, ...rest) {
    const child = spawn(program, [name, '-c', this.file, ...rest], { timeout: 60000 });
    const said = { out: '', err: '' };
    child.stdout.on('data', (data) => (said.out += data));
    child.stderr.on('data', (data) => (said.err += data));
    const [code] = await once(child, 'close');
    return { code, ...said };
  }
}

// Runs the tasks, `width` at a time.
export async function parallel(width, tasks) {
  let next = 0;
  await Promise.all(Array.from({ length: width }, async () => {
    while (next < tasks.length) await tasks[next++]();
  }));
}

export const githubSecret = "It's a Secret to Everybody";

// A delivery as GitHub signs it, without its packages.
export function githubHeaders(id, body, event = 'push') {
  const signature = createHmac('sha256', githubSecret).update(body).digest('hex');
  return {
    'Content-Type': 'application/json',
    'X-GitHub-Event': event,
    'X-GitHub-Delivery': id,
    'X-Hub-Signature-256': `sha256=${signature}`,
  };
}

// A route that takes GitHub's deliveries for an HTTP handler.
export function githubRoute(handler, more = {}) {
  return {
    name: 'github',
    source: { http: { path: '/github' } },
    verify: { scheme: 'github', secrets: [{ value: githubSecret }] },
    id: ['header:X-GitHub-Delivery'],
    respond: 'accepted',
    handler: { http: { url: `http://127.0.0.1:${handler.port}/hook`, timeout: '5s', concurrency: 16 } },
    ...more,
  };
}
