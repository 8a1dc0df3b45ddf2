// SPDX-License-Identifier: MIT
// The ledger of an end-to-end test (tests/checker/ledger.h), and the checker
// that judges it together with the store's dump at the end.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { githubHeaders, program } from './lib.mjs';

const checker = path.join(path.dirname(program), 'onced_checker');
const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex');

// For a worker whose routes have HTTP handlers that `handling` was given to.
// Its process is started, killed and stopped through the ledger, which tells
// the handlers by a header which process invoked them.
export class Ledger {
  constructor(worker) {
    this.worker = worker;
    this.file = path.join(worker.folder, 'ledger.jsonl');
    this.fd = fs.openSync(this.file, 'wx');
    this.next = { try: 1, n: 1 };
    this.process = 0;
    this.effects = new Set(); // keys whose effect was applied
    this.acked = new Set(); // ids
    this.now = 0;
    for (const route of worker.config.routes) this.#putRoute(route);
  }

  // Written at once, so that it is there to be read when the test fails.
  #put(line) {
    fs.writeSync(this.fd, `${JSON.stringify(line)}\n`);
  }

  #putRoute({ name, namespace = name, respond = 'accepted', on_uncertain, after_dead = 'continue', order_by = 'none', drift = 'ack' }) {
    this.#put({ l: 'route', route: name, namespace, respond, on_uncertain: on_uncertain ?? (respond === 'result' ? 'hold' : 'retry'),
      after_dead, ordered: order_by !== 'none', drift });
  }

  // The system's clock may be set back; the ledger's is not.
  note(l, members) {
    this.now = Math.max(this.now, Date.now());
    this.#put({ l, t: this.now, ...members });
  }

  // --- the worker -----------------------------------------------------------

  async start() {
    this.process++;
    for (const { handler } of this.worker.config.routes) {
      handler.http.headers = { ...handler.http.headers, 'X-Process': String(this.process) };
    }
    this.note('start', { process: this.process });
    await this.worker.start();
  }

  async kill() {
    await this.worker.kill();
    this.note('fault', { kind: 'crash', process: this.process });
  }

  // --- senders and handlers ---------------------------------------------------

  // A GitHub delivery; gives the answer, or null where the connection broke.
  async post(route, id, body, agent) {
    const number = this.next.try++;
    this.note('sent', { try: number, route, id, hash: hashOf(body) });
    const answer = await this.worker.post(`/${route}`, githubHeaders(id, body), body, agent).catch(() => null);
    if (answer === null) return null;
    this.note('resp', { try: number, status: answer.status });
    if (answer.status < 300) this.acked.add(id);
    return answer;
  }

  // The `answer` of a Handler: as the given one, which gives a status. A
  // success applies the effect of its key, once.
  handling(answer) {
    return async (invocation) => {
      const { id, key, attempt, headers, body } = invocation;
      const n = this.next.n++;
      this.note('inv', { n, route: headers['onced-route'], id, hash: hashOf(body), key, attempt, process: Number(headers['x-process']) });
      const status = await answer(invocation);
      const effect = status === 200 && !this.effects.has(key);
      if (effect) this.effects.add(key);
      this.note('done', { n, end: 'status', status, effect });
      return status;
    };
  }

  // --- the end -----------------------------------------------------------------

  // All has come to rest. Stops the worker, and holds the ledger against what
  // is in the store; gives what the checker says of it.
  async check() {
    const dump = path.join(this.worker.folder, 'dump.jsonl');
    this.note('quiet', {});
    fs.closeSync(this.fd);
    assert.equal(await this.worker.stop(), 0);
    const { code, err } = await this.worker.command('dump', '-o', dump);
    assert.equal(code, 0, err);
    const { status, stdout, stderr, error } = spawnSync(checker, [this.file, dump], { encoding: 'utf8' });
    assert.equal(status, 0, `${checker} ${this.file} ${dump}: ${error ?? `${stdout}${stderr}`}`);
    return stdout.trim();
  }
}
