// SPDX-License-Identifier: MIT
// The figures that are wanted, each with the way to the one that was reached
// in the JSON file of its part, and, for the page where it is missed, what
// limits it.

import { median } from './common.mjs';

const find = (result, name, n) => result.cases.find((one) => one.name === name && (n === undefined || n === one.connections || n === one.concurrency));
const lines = (list, what) => list.filter((line) => Object.entries(what).every(([key, value]) => line[key] === value));
const most = (values) => (values.length > 0 ? Math.max(...values) : undefined);

// One accepted and one settled.
const perKeyEvent = (order, waiting) => order.filter((line) => line.waiting === waiting && line.what.startsWith('the same key'))
  .reduce((sum, line) => sum + line.cpu_us_per_event, 0);

const ingestLimit = `At 64 connections a batch is small, and each batch is two durable writes. What is left is the kernel's part of a
request (\`send\` 15 % of the worker's time, \`recv\`, and \`epoll_ctl\` 6 %: the library takes a connection out of its
set while it waits for the commit, and puts it back), switching between threads (12 %), writing and syncing the pages
(24 %), and the load generator on the same processors. Tried and kept: contexts of the hashes once per thread, one pass
over a request's headers, buffers that are sized once: 11,000 of 163,000 instructions in user mode for a request, of
which 49,000 are the library's clearing of a connection's memory and 25,000 SHA-256. Tried and left: link-time
optimization (2 %). Left: a smaller memory of a connection, which would be as good for the baseline and halve the
largest head.`;

const execLimit = `A place is free again when the result is durable, and the next program starts when its claim is: with so few
places some of them wait for the disk while the processors idle (15 % of the time, against 9 % for spawning alone). Twice
as many places hide it. The engine takes a seventh of the processors, mostly \`fdatasync\`; the lease of a program and its
watching 0.1 ms each. Tried and kept: a thread for each processor that starts programs, as a start takes until the program
is there (0.62 became 0.86 at 4 × cores); the ends of programs no longer wake the main thread (12 µs each). Starting
programs ahead of their claim would be faster and is not done: after a crash nobody could tell whether they ran.`;

const kafkaLimit = `The rate that is wanted with \`noop\` is three times what Kafka Streams' de-duplicator with exactly-once reached on a machine
like this (54,000 a second). One thread decides: an event costs it about 8 µs, in two transactions, spread evenly over LMDB's
pages, the allocator, hashes of ids and two rows; the rest is the disk, twice for each batch, and the broker and librdkafka's
threads, which share the processors. With keys in order a place is free again when its result is durable, and taken when the
next claim is: at 16 places that adds 1.9 ms to the handler's 2.5 ms. At 256 places the engine's thread is busy: an event that
waits for its key is stored with its message, freed, claimed and settled, four changes of its record instead of two.`;

export const wanted = [
  ...[[64, 0.27, 0.33], [256, 0.38, 0.45]].map(([n, least, aim]) => ({
    part: 'ingest', what: `new events a second, ${n} connections, ÷ the library doing nothing`, least, aim,
    reached: (result) => find(result, 'accepted, new', n)?.ratio, limit: ingestLimit,
  })),
  ...[2, 4].map((times) => ({
    part: 'exec', what: `programs a second (\`/bin/true\`), ${times} × cores at a time, ÷ spawning alone`, least: 0.8,
    reached: (result, { cores }) => find(result, '/bin/true', times * cores)?.ratio, limit: execLimit,
  })),
  {
    part: 'store', what: 'events a second with 10 M ids ÷ with 1 M, batches of 100', least: 0.8, aim: 0.9,
    reached: ({ rate }) => lines(rate, { measure: 'ratio', of: 'onced', ids: most(rate.map(({ ids }) => ids)), batch: 100 })[0]?.ratio,
    applies: ({ rate }) => most(rate.map(({ ids }) => ids)) > 5000000,
  },
  {
    part: 'store', what: 'bytes for an id, sealed', most: 220, aim: 150,
    reached: ({ rate }) => most(lines(rate, { measure: 'size' }).filter(({ ids }) => ids >= 500000).map((line) => line.bytes_per_sealed_id)),
  },
  ...[['warm', 'in'], ['cold', 'not in']].map(([cache, where]) => ({
    part: 'store', what: `seconds to start with 10 M ids, the file ${where} the page cache`, most: 1,
    reached: ({ start }) => median(start.filter((line) => line.ids > 5000000 && line.cache === cache).map((line) => line.wall_s)),
    applies: ({ start }) => most(start.map(({ ids }) => ids)) > 5000000,
  })),
  {
    part: 'store', what: 'processor time for an event of a key with 50,000 waiting ÷ with none', most: 1.2,
    reached: ({ order }) => perKeyEvent(order, 50000) / perKeyEvent(order, 0),
  },
  ...[[16, 0.8, 0.95], [256, 0.5]].map(([places, least, aim]) => ({
    part: 'kafka', what: `messages of 1,000 keys in order, handlers of 0–5 ms, ${places} at a time, ÷ places never empty`, least, aim,
    reached: (result) => result.cases.find((one) => one.places === places)?.ratio, limit: kafkaLimit,
  })),
  {
    part: 'kafka', what: 'messages a second, `noop`, 1 M of 200 bytes', least: 162000, aim: 270000,
    reached: (result) => find(result, 'noop')?.onced.rate, limit: kafkaLimit,
  },
  { part: 'idle', what: 'per cent of a core, three routes', most: 0.5, reached: ({ cases }) => cases.at(-1).cpu_percent },
  { part: 'idle', what: 'MiB resident, three routes', most: 30, reached: ({ cases }) => cases.at(-1).resident_kib / 1024 },
  { part: 'idle', what: 'wake-ups a second, three routes', most: 0.5, reached: ({ cases }) => cases.at(-1).wakeups_per_second },
];

export const isReached = (row, value) => (row.least !== undefined ? value >= row.least : value <= row.most);
