// SPDX-License-Identifier: MIT
// What a worker with nothing to do takes: how often its threads wake up, the
// processor, the memory.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import { Worker } from '../e2e/lib.mjs';
import { digits, route, say, sleep, watched, withFolder } from './common.mjs';

const settleMs = 3000;
const configs = [
  { name: 'one route (http)', routes: [['http', { http: { url: 'http://127.0.0.1:9/' } }]] },
  {
    name: 'three routes (http, exec, noop)',
    routes: [['http', { http: { url: 'http://127.0.0.1:9/' } }], ['exec', { exec: { command: ['/bin/true'] } }], ['noop', { noop: {} }]],
  },
];

function threads(pid) {
  return new Map(fs.readdirSync(`/proc/${pid}/task`).map((id) => {
    const status = fs.readFileSync(`/proc/${pid}/task/${id}/status`, 'utf8');
    const stat = fs.readFileSync(`/proc/${pid}/task/${id}/schedstat`, 'utf8');
    const switches = [...status.matchAll(/^(?:non)?voluntary_ctxt_switches:\s*(\d+)$/gm)];
    return [id, {
      name: /^Name:\s*(.*)$/m.exec(status)[1],
      wakeups: switches.reduce((sum, [, n]) => sum + Number(n), 0),
      ns: Number(stat.split(' ')[0]),
    }];
  }));
}

function kib(pid, field) {
  return Number(new RegExp(`^${field}:\\s*(\\d+) kB$`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
}

async function look({ routes }, seconds) {
  return withFolder(async (folder) => {
    const worker = await new Worker(folder, { routes: routes.map(([name, handler]) => route(name, handler)) }).start();
    const { pid } = worker.child;
    await sleep(settleMs);
    const before = threads(pid);
    await sleep(seconds * 1000);
    const after = threads(pid);
    const result = {
      seconds,
      threads: after.size,
      wakeups: {},
      cpu_percent: 0,
      resident_kib: kib(pid, 'VmRSS'),
      anonymous_kib: kib(pid, 'RssAnon'),
    };
    for (const [id, { name, wakeups, ns }] of after) {
      result.wakeups[name] = (result.wakeups[name] ?? 0) + wakeups - before.get(id).wakeups;
      result.cpu_percent += (ns - before.get(id).ns) / (seconds * 1e7);
    }
    result.cpu_percent = digits(result.cpu_percent, 3);
    result.wakeups_per_second = digits(Object.values(result.wakeups).reduce((a, b) => a + b) / seconds, 2);
    assert.equal(await worker.stop(), 0);
    return result;
  });
}

export async function idle({ idleSeconds }) {
  const cases = [];
  for (const config of configs) {
    say(`idle: ${config.name}, ${idleSeconds} s`);
    cases.push({ name: config.name, ...(await watched(() => look(config, idleSeconds))) });
  }
  return { cases };
}
