// SPDX-License-Identifier: MIT
// A worker under a load of every kind, and the ledger of it: three routes
// (one in order, one that holds what is in doubt, one of programs), senders
// who repeat themselves, handlers that fail, are busy or refuse, and an
// operator who replays dead letters. The ledger's lines are those of
// tests/checker/ledger.h.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { Handler, Worker, githubHeaders, githubSecret, program as onced, request, until } from '../lib.mjs';

const checker = path.join(path.dirname(onced), 'onced_checker');

export const hash = (text) => createHash('sha256').update(text).digest('hex');
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// A sequence of its own for each text: what runs beside it changes nothing.
export function dice(text) {
  let state = (Number.parseInt(hash(text).slice(0, 8), 16) % 2147483646) + 1;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

// What becomes of an event is the last part of its id; what is refused is
// refused until an operator has cured it.
const kinds = [...Array(9).fill('ok'), 'fails', 'busy', 'refused'];
const statusOf = (id, attempt, cured) => {
  if (id.endsWith('-refused')) return cured ? 200 : 404;
  if (id.endsWith('-fails') && attempt === 1) return 503;
  return id.endsWith('-busy') && attempt === 1 ? 429 : 200;
};

// The same of a program. An effect is a folder that only one can make.
const program = `#!/usr/bin/env bash
read -r body
say() { printf '%s %s\\n' "\${EPOCHREALTIME/./}" "$*" >>ledger; }
say inv "$$" "$ONCED_EVENT_ID" "$IDEMPOTENCY_KEY" "$ONCED_ATTEMPT" "$PROCESS" "$body"
code=0
case $ONCED_EVENT_ID in
*-refused) [ -e "cured/$ONCED_EVENT_ID" ] || code=65 ;;
*-fails) [ "$ONCED_ATTEMPT" != 1 ] || code=1 ;;
*-busy) [ "$ONCED_ATTEMPT" != 1 ] || code=75 ;;
esac
effect=false
[ $code != 0 ] || ! mkdir "effects/$IDEMPOTENCY_KEY" 2>/dev/null || effect=true
say done "$$" $code $effect
exit $code
`;

export class Load {
  // `retentionMs` is that of the first process; the later ones forget
  // nothing more, so that the end can be looked at.
  constructor(folder, random, { retentionMs = 3600000 } = {}) {
    this.folder = folder;
    this.random = random;
    this.retentionMs = retentionMs;
    this.process = 0;
    this.lines = [];
    this.events = new Map(); // by id
    this.unknown = []; // events whose last try had no answer
    this.letters = []; // refused, and nobody has decided on them
    this.cured = new Set();
    this.effects = new Set(); // keys
    this.programs = new Map(); // by process id
    this.programsRead = 0;
    this.next = { n: 1, try: 1, event: 1 };
  }

  async open() {
    for (const name of ['', 'effects', 'cured']) fs.mkdirSync(path.join(this.folder, name));
    fs.writeFileSync(path.join(this.folder, 'program'), program, { mode: 0o755 });
    this.handler = await new Handler((invocation) => this.#answer(invocation)).listen();
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
    this.worker = new Worker(this.folder, {});
  }

  async close() {
    await this.worker?.kill();
    this.agent?.destroy();
    await this.handler?.close();
  }

  note(l, members) {
    this.lines.push({ l, t: Date.now(), ...members });
  }

  // --- the worker ------------------------------------------------------------------------------

  #config() {
    const route = (name, handler, more) => ({ name, source: { http: { path: `/${name}` } },
      verify: { scheme: 'github', secrets: [{ value: githubSecret }] }, id: ['header:X-GitHub-Delivery'],
      retry: { backoff: '5ms', max_backoff: '20ms' }, handler, ...more });
    const web = { http: { url: `http://127.0.0.1:${this.handler.port}/`, timeout: '20s', concurrency: 8,
      headers: { 'X-Process': `${this.process}` } } };
    const exec = { exec: { command: ['./program'], timeout: '20s', concurrency: 2, environment: { PROCESS: `${this.process}` } } };
    return {
      log: { level: 'warn' },
      store: { retention: this.process === 1 ? `${this.retentionMs}ms` : '1h' },
      listen: { address: `unix:${path.join(this.folder, 'in.sock')}`, threads: 2 },
      routes: [route('keys', web, { order_by: 'json:/key' }), route('held', web, { on_uncertain: 'hold' }), route('exec', exec)],
    };
  }

  async launch(environment) {
    this.process++;
    this.worker.config = this.#config();
    this.note('start', { process: this.process });
    await this.worker.launch(environment);
  }

  // True when it is ready, false when it has ended before.
  async ready() {
    await until('the worker to be ready, or dead', async () => !this.worker.child || this.#isReady());
    return this.worker.child !== null;
  }

  async #isReady() {
    return (await this.worker.admin('/readyz').catch(() => null))?.status === 200;
  }

  // Waits for its end; gives the exit code or the signal.
  async ended() {
    const how = await this.worker.exited;
    if (how === 'SIGKILL') this.note('fault', { kind: 'crash', process: this.process });
    return how;
  }

  // --- the handlers ----------------------------------------------------------------------------

  async #answer({ id, key, attempt, headers, body }) {
    const n = this.next.n++;
    const route = headers['onced-route'];
    this.note('inv', { n, route, id, hash: hash(body), key, attempt, process: Number(headers['x-process']) });
    if (this.random() < 0.5) await pause(this.random() * 8);
    const status = statusOf(id, attempt, this.cured.has(id));
    const effect = status === 200 && !this.effects.has(key);
    if (effect) this.effects.add(key);
    this.note('done', { n, end: 'status', status, effect });
    if (status === 404) this.letters.push({ route, id });
    return status;
  }

  // What the programs have written: "microseconds inv|done pid …".
  readPrograms() {
    const file = path.join(this.folder, 'ledger');
    const text = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
    const end = text.lastIndexOf('\n') + 1;
    for (const line of text.slice(this.programsRead, end).split('\n').filter(Boolean)) {
      const [at, l, pid, ...rest] = line.split(' ');
      const t = Math.floor(Number(at) / 1000);
      if (l === 'inv') {
        const [id, key, attempt, process, ...body] = rest;
        const n = this.next.n++;
        this.programs.set(pid, { n, id });
        this.lines.push({ l, t, n, route: 'exec', id, hash: hash(body.join(' ')), key, attempt: Number(attempt), process: Number(process) });
      } else {
        const { n, id } = this.programs.get(pid);
        this.lines.push({ l, t, n, end: 'exit', status: Number(rest[0]), effect: rest[1] === 'true' });
        if (rest[0] === '65') this.letters.push({ route: 'exec', id });
      }
    }
    this.programsRead = end;
  }

  // --- senders and an operator -----------------------------------------------------------------

  // Sends until the worker is dead or `goOn` says no.
  async run(goOn) {
    const on = () => this.worker.child !== null && goOn();
    await Promise.all([this.#operate(on), ...Array.from({ length: 8 }, (_, i) => this.#send(i, on))]);
  }

  // A key has one sender, who goes on when an event is in, or gives it up.
  async #send(sender, goOn) {
    const route = ['keys', 'keys', 'keys', 'held', 'exec'][sender % 5];
    while (goOn()) {
      const event = this.#choose(sender, route);
      if (await this.try(event) === null) this.unknown.push(event);
    }
  }

  // A new event, or, one time in five, one of the last.
  #choose(sender, route) {
    if (this.random() < 0.2) {
      const old = [...this.events.values()].slice(-20).findLast((event) => event.route === route && event.acked);
      if (old && Date.now() - old.born < this.retentionMs / 4) return old;
    }
    const n = this.next.event++;
    const id = `${n}-${kinds[Math.floor(this.random() * kinds.length)]}`;
    const event = { route, id, order: route === 'keys' ? `key ${sender}` : '', body: JSON.stringify({ n, key: `key ${sender}` }), born: Date.now() };
    this.events.set(id, event);
    return event;
  }

  // The status, or null where none came.
  async try(event) {
    const { route, id, body, order } = event;
    const number = this.next.try++;
    this.note('sent', { try: number, route, id, hash: hash(body), order });
    const answer = await request({ socketPath: path.join(this.folder, 'in.sock'), path: `/${route}`, method: 'POST',
      headers: githubHeaders(id, body), agent: this.agent }, body).catch(() => null);
    if (answer === null) return null;
    assert.ok([200, 202, 503].includes(answer.status), `${id}: status ${answer.status} ${answer.body}`);
    this.note('resp', { try: number, status: answer.status });
    if (answer.status !== 503) event.acked = true;
    return answer.status;
  }

  // Cures every other one that was refused, and has it attempted again.
  async #operate(goOn) {
    while (goOn()) {
      this.readPrograms();
      const letter = this.letters.shift();
      if (!letter) await pause(5);
      else if (this.random() < 0.5) await this.replay(letter);
    }
  }

  // False where it is not dead yet, or nobody knows.
  async replay({ route, id }) {
    this.cured.add(id);
    fs.writeFileSync(path.join(this.folder, 'cured', id), '');
    const answer = await this.worker.admin(`/v1/events/${route}/${id}/replay`, 'POST', '{}').catch(() => null);
    const verdict = answer === null ? 'unknown'
      : { 200: JSON.parse(answer.body).result, 404: 'not-found', 409: 'refused', 503: 'busy' }[answer.status];
    this.note('order', { kind: 'replay', route, id, verdict });
    return answer?.status === 200;
  }

  // --- the end -------------------------------------------------------------------------------------

  // Starts it for the last time and lets everything come to rest; every dead
  // letter but what is in doubt is cured.
  async heal() {
    await this.launch();
    assert.ok(await this.ready(), this.worker.log());
    // Less than the lease of an attempt: recovery must not wait for its end.
    this.note('heal', { within_ms: 15000 });
    // Half of the senders try again what they do not know of.
    for (const event of this.unknown) {
      if (event.acked || this.random() < 0.5) continue;
      assert.ok([200, 202].includes(await this.try(event)), event.id);
    }
    await this.#settle();
    for (const { route, id, state, reason } of await this.#list()) {
      if (state === 'DEAD' && reason === 'refused') assert.ok(await this.replay({ route, id }), `${id}: not replayed`);
    }
    await this.#settle();
    this.note('quiet', {});
    assert.equal(await this.worker.stop(), 0);
    const { code, out, err } = await this.worker.command('verify-store');
    assert.equal(code, 0, `verify-store: ${out}${err}`);
    this.readPrograms();
  }

  // What was done when the first process, which forgets, had `retentionMs`
  // to go, may be forgotten; what it did not forget is in the dump.
  noteForgotten(dump, forgotMs) {
    const known = new Set(dump.trimEnd().split('\n').map((line) => JSON.parse(line).id));
    const done = new Map(this.lines.filter(({ l, effect }) => l === 'done' && effect).map(({ n, t }) => [n, t]));
    for (const { l, n, route, id } of this.lines.filter((line) => line.l === 'inv')) {
      if (!known.has(id) && done.get(n) <= forgotMs - this.retentionMs) this.lines.push({ l: 'forgotten', t: forgotMs, route, id });
    }
  }

  // Holds the ledger and the store's dump against what is promised.
  async check(forgotMs) {
    const { code, out, err } = await this.worker.command('dump');
    assert.equal(code, 0, err);
    this.noteForgotten(out, forgotMs);
    this.lines.sort((a, b) => a.t - b.t);
    const file = path.join(this.folder, 'ledger.jsonl');
    const routes = this.worker.config.routes.map(({ name, on_uncertain, order_by }) => ({ l: 'route', route: name, namespace: name,
      on_uncertain: on_uncertain ?? 'retry', after_dead: 'continue', ordered: order_by !== undefined }));
    fs.writeFileSync(file, [...routes, ...this.lines].map((line) => `${JSON.stringify(line)}\n`).join('') + out);
    const said = spawnSync(checker, [file], { encoding: 'utf8' });
    assert.equal(said.status, 0, `${checker} ${file}: ${said.stdout}${said.stderr}`);
  }

  async #settle() {
    for (const { name } of this.worker.config.routes) await this.worker.settled(name, 30000);
  }

  async #list() {
    const all = [];
    for (let cursor = ''; cursor !== null;) {
      const page = await this.worker.json(`/v1/events?limit=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
      all.push(...page.events);
      cursor = page.cursor;
    }
    return all;
  }
}
