// SPDX-License-Identifier: MIT
// Deliveries signed by the providers' own packages, each sent three times
// over 16 connections: handled once, repeats recognised, any altered byte
// refused with 401 and nothing stored.

import assert from 'node:assert/strict';
import http from 'node:http';
import { StandardWebhook, SvixWebhook, githubExamples, signGithub, stripe } from './senders/index.mjs';
import { Handler, Worker, makeFolder, parallel } from './lib.mjs';

const secrets = {
  standard: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  svix: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  stripe: 'whsec_test_secret',
  github: "It's a Secret to Everybody",
};

const now = () => Math.floor(Date.now() / 1000);

// What each sender sends for an event: { id, body, headers }.
const senders = {
  standard(n) {
    const id = `msg_${n}`;
    const body = JSON.stringify({ type: 'demo', n, text: 'é😀' });
    const date = new Date();
    return {
      id, body,
      headers: {
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(date.getTime() / 1000)),
        'webhook-signature': new StandardWebhook(secrets.standard).sign(id, date, body),
      },
    };
  },
  svix(n) {
    const id = `msg_svix_${n}`;
    const body = JSON.stringify({ type: 'invoice.paid', n });
    const date = new Date();
    return {
      id, body,
      headers: {
        'svix-id': id,
        'svix-timestamp': String(Math.floor(date.getTime() / 1000)),
        'svix-signature': new SvixWebhook(secrets.svix).sign(id, date, body),
      },
    };
  },
  stripe(n) {
    const id = `evt_${n}`;
    const body = JSON.stringify({ id, object: 'event', type: 'charge.succeeded', data: { object: { id: `ch_${n}` } } }, null, 2);
    return {
      id, body,
      headers: {
        'stripe-signature': stripe.generateTestHeaderString({ payload: body, secret: secrets.stripe, timestamp: now() }),
      },
    };
  },
};

const payloads = githubExamples.flatMap(({ name, examples: list }) =>
  list.map((payload) => ({ name, body: JSON.stringify(payload) })));
assert.ok(payloads.length >= 300, `only ${payloads.length} example payloads`);

async function github(n) {
  const { name, body } = payloads[n];
  const id = `72d3162e-cc78-11e3-81ab-${String(n).padStart(12, '0')}`;
  return {
    id, body,
    headers: {
      'X-GitHub-Event': name,
      'X-GitHub-Delivery': id,
      'X-Hub-Signature-256': await signGithub(secrets.github, body),
    },
  };
}

const handler = await new Handler().listen();
const route = (name, scheme, id, extra = {}) => ({
  name,
  source: { http: { path: `/${name}` } },
  verify: { scheme, secrets: [{ value: secrets[name] }] },
  id: [id],
  respond: 'accepted',
  handler: { http: { url: `http://127.0.0.1:${handler.port}/${name}`, concurrency: 16 } },
  ...extra,
});
const worker = await new Worker(makeFolder('senders'), {
  routes: [
    route('standard', 'standard-webhooks', 'header:webhook-id'),
    route('svix', 'svix', 'header:svix-id'),
    route('stripe', 'stripe', 'json:/id'),
    route('github', 'github', 'header:X-GitHub-Delivery'),
  ],
}).start();
const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });

const deliveries = [];
for (let n = 0; n < 50; n++) {
  for (const name of Object.keys(senders)) deliveries.push({ name, make: () => senders[name](n) });
}
for (let n = 0; n < payloads.length; n++) deliveries.push({ name: 'github', make: () => github(n) });

const post = (name, { headers, body }) =>
  worker.post(`/${name}`, { 'Content-Type': 'application/json', ...headers }, body, agent);

// --- each sent three times -----------------------------------------------------

const answers = new Map();
const tasks = deliveries.flatMap(({ name, make }) => [0, 1, 2].map(() => async () => {
  const delivery = await make();
  const { status } = await post(name, delivery);
  const key = `${name}/${delivery.id}`;
  answers.set(key, [...(answers.get(key) ?? []), status]);
}));
await parallel(16, tasks);

for (const [key, statuses] of answers) {
  assert.deepEqual([...statuses].sort(), [200, 200, 202], key);
}
const accepted = answers.size;
assert.equal(accepted, deliveries.length);

let stored = 0;
for (const name of ['standard', 'svix', 'stripe', 'github']) {
  const counts = await worker.settled(name);
  assert.equal(counts.succeeded, deliveries.filter((d) => d.name === name).length, name);
  stored += counts.succeeded;
}
assert.equal(handler.invocations.length, deliveries.length, 'each was handled exactly once');
for (const { name, make } of deliveries.slice(0, 8)) {
  const { id, body } = await make();
  const [invocation] = handler.of(id);
  assert.equal(invocation.body.toString(), body, `${name}/${id}: the body as it was sent`);
  const event = await worker.event(name, id);
  assert.equal(event.deliveries, 3);
  assert.equal(event.attempts, 1);
}

// --- any altered byte is refused --------------------------------------------------

const flip = (text, at) => {
  const bytes = Buffer.from(text);
  bytes[at] ^= 1;
  return bytes;
};
let altered = 0;
const alter = [];
for (const name of ['standard', 'svix', 'stripe', 'github']) {
  const make = async (n) => {
    if (name !== 'github') return senders[name](1000 + n);
    const delivery = await github(n);
    return { ...delivery, headers: { ...delivery.headers, 'X-GitHub-Delivery': `altered-${n}` } };
  };
  const { body } = await make(0);
  const length = Buffer.byteLength(body);
  for (let at = 0; at < length; at += Math.max(1, Math.floor(length / 60))) {
    alter.push(async () => {
      const delivery = await make(at % 10);
      const bytes = flip(delivery.body, at % Buffer.byteLength(delivery.body));
      const { status } = await post(name, { ...delivery, body: bytes });
      assert.equal(status, 401, `${name}: body byte ${at}`);
      altered++;
    });
  }
  const delivery = await make(3);
  for (const header of Object.keys(delivery.headers).filter((h) => /signature|timestamp|-id$/i.test(h))) {
    const value = delivery.headers[header];
    for (let at = 0; at < value.length; at++) {
      // A flipped bit may give a character that no header can hold, or one
      // that says the same (the case of a hex digit, unused base64 bits).
      const changed = value.slice(0, at) + (value[at] === 'A' ? 'B' : 'A') + value.slice(at + 1);
      if (name === 'stripe' && /^t=\d+,v1=/.test(changed) === false) continue;
      if (changed.toLowerCase() === value.toLowerCase() || /=$/.test(value.slice(at))) continue;
      alter.push(async () => {
        const { status } = await post(name, { ...delivery, headers: { ...delivery.headers, [header]: changed } });
        assert.equal(status, 401, `${name}: ${header} ${changed}`);
        altered++;
      });
    }
  }
  alter.push(async () => {
    const { headers, body: intact } = await make(4);
    const none = Object.fromEntries(Object.entries(headers).filter(([h]) => !/signature/i.test(h)));
    assert.equal((await post(name, { headers: none, body: intact })).status, 401, `${name}: no signature`);
    altered++;
  });
}
await parallel(16, alter);
const status = await worker.json('/v1/status');
assert.equal(status.store.remembered, stored, 'nothing altered was stored');
assert.equal(handler.invocations.length, deliveries.length, 'nothing altered was handled');

agent.destroy();
assert.equal(await worker.stop(), 0);
await handler.close();
console.log(`${deliveries.length} events sent three times, ${altered} altered deliveries refused`);
