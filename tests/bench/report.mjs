// SPDX-License-Identifier: MIT
// docs/performance.md, from the JSON files alone.

import fs from 'node:fs';
import path from 'node:path';
import { root } from '../e2e/lib.mjs';
import { isBusy, load } from './common.mjs';
import { isReached, wanted } from './wanted.mjs';

const page = path.join(root, 'docs/performance.md');
const table = (head, rows) => [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');
const whole = (value) => Math.round(value).toLocaleString('en-US');
const figure = (value) => (value === undefined ? '' : Number(value.toPrecision(3)).toString());
const times = (n) => (n === 1 ? 'one round' : `${n} rounds`);
const ms = (us) => (us / 1000).toFixed(2);
const others = (value) => (isBusy(value) ? `**${value.toFixed(2)}**` : value.toFixed(2));

function where({ at, version, machine, command }) {
  return `\`${command}\`, ${version}, ${at.slice(0, 10)}: ${machine.cores} cores (${machine.cpu}), ${machine.memory_gib} GiB, Linux ${machine.kernel}, `
    + `${machine.filesystem}, a durable write of 4 KiB in ${machine.fdatasync_p50_us} µs at the median, load ${machine.load_before} before it.`;
}

const busyNote = (values) => (values.some(isBusy)
  ? '\n**The machine was busy**: other programs took the processors that stand under *others*. The ratios are too low, or too high.\n' : '');

const sections = {
  ingest({ rounds, seconds, cases }) {
    const closed = cases.filter((one) => !one.open);
    const open = cases.filter((one) => one.open);
    return `## Taking webhooks in

Signed webhooks of 300 bytes, as GitHub sends them, over connections that are kept, from the same machine; a \`noop\`
handler, two durable commits for an event. The baseline is the same HTTP library behind the same loop, which reads the
request and answers 202: it verifies, decides and stores nothing. Both in turn, ${times(rounds)} of ${seconds} s, medians.

As fast as they are answered:

${table(['', 'connections', 'onced a second', 'baseline', 'ratio', 'of the rounds', 'p50 ms', 'p99 ms', 'p99.9 ms', 'others'], closed.map((one) => [
    one.name, one.connections, whole(one.onced.rate), whole(one.ceiling.rate), `**${one.ratio.toFixed(2)}**`,
    `${Math.min(...one.ratios).toFixed(2)}–${Math.max(...one.ratios).toFixed(2)}`,
    ms(one.onced.p50_us), ms(one.onced.p99_us), ms(one.onced.p999_us), others(one.others)]))}

At half of that rate, each request at its time, whatever became of those before; the latency runs from that time:

${table(['', 'connections', 'a second', 'p50 ms', 'p99 ms', 'p99.9 ms', 'baseline p50', 'p99', 'p99.9', 'others'], open.map((one) => [
    one.name.replace(/, at half the rate/, ''), one.connections, whole(one.offered), ms(one.onced.p50_us), ms(one.onced.p99_us), ms(one.onced.p999_us),
    ms(one.ceiling.p50_us), ms(one.ceiling.p99_us), ms(one.ceiling.p999_us), others(one.others)]))}
${busyNote(cases.map((one) => one.others))}`;
  },

  exec({ rounds, seconds, cases }) {
    return `## Running programs

An event through a program each, with the events there before the clock starts. The baseline spawns the same program
with the same pipes, waits for it, and does nothing else. Both in turn, ${times(rounds)} of ${seconds} s, medians.

${table(['program', 'at a time', 'onced a second', 'baseline', 'ratio', 'of the rounds', 'others'], cases.map((one) => [
    one.name, one.concurrency, whole(one.onced.rate), whole(one.alone.rate), `**${one.ratio.toFixed(2)}**`,
    `${Math.min(...one.ratios).toFixed(2)}–${Math.max(...one.ratios).toFixed(2)}`, others(one.others)]))}
${busyNote(cases.map((one) => one.others))}`;
  },

  kafka({ rounds, cases }) {
    const against = cases.filter((one) => !one.places);
    const ordered = cases.filter((one) => one.places);
    return `## Messages of a topic

Messages of 200 bytes, each an event of its own, from 8 partitions of a broker on the same machine, which takes part of
its processors: read, deduplicated, handled, settled in two durable commits each, and their offsets committed. The rate
runs from the first event that is settled; the whole run, from the start of the process, stands beside it. The baseline
is librdkafka, which takes the same messages in batches and drops them. Both in turn, ${times(rounds)}, medians.

${table(['handler', 'messages', 'onced a second', 'whole run', 'librdkafka alone', 'ratio', 'of the rounds', 'others'], against.map((one) => [
    one.name, whole(one.messages), whole(one.onced.rate), whole(one.onced.whole_rate), whole(one.most), `**${one.ratio.toFixed(2)}**`,
    `${Math.min(...one.ratios).toFixed(2)}–${Math.max(...one.ratios).toFixed(2)}`, others(one.others)]))}

In order for each key, against so many places that are never empty:

${table(['', 'messages', 'onced a second', 'most', 'ratio', 'of the rounds', 'others'], ordered.map((one) => [
    one.name, whole(one.messages), whole(one.onced.rate), whole(one.most), `**${one.ratio.toFixed(2)}**`,
    `${Math.min(...one.ratios).toFixed(2)}–${Math.max(...one.ratios).toFixed(2)}`, others(one.others)]))}
${busyNote(cases.map((one) => one.others))}`;
  },

  idle({ cases }) {
    return `## Doing nothing

${table(['', 'threads', 'seconds', 'wake-ups', 'by thread', '% of a core', 'MiB resident', 'of it anonymous'], cases.map((one) => [
    one.name, one.threads, one.seconds, whole(one.wakeups_per_second * one.seconds),
    Object.entries(one.wakeups).filter(([, n]) => n > 0).map(([name, n]) => `${name} ${n}`).join(', ') || 'none',
    one.cpu_percent.toFixed(3), (one.resident_kib / 1024).toFixed(1), (one.anonymous_kib / 1024).toFixed(1)]))}

\`MHD-listen\` is the HTTP library's thread of the admin API; of its own accord onced wakes up once a minute.
`;
  },

  store({ rate, start, order, others: taken }) {
    const of = (measure) => rate.filter((line) => line.measure === measure);
    const direct = (line) => of('rate').find((other) => other.of === 'direct' && other.ids === line.ids && other.batch === line.batch);
    const quotient = (line) => (direct(line) ? figure(line.per_second / direct(line).per_second) : '');
    return `## The store alone

Events accepted and settled by the engine, two durable commits each, with so many ids remembered; beside it LMDB with
every id put straight into its tree.

${table(['ids', 'batch', 'onced a second', 'straight', 'ratio', 'µs of processor'], of('rate').filter((line) => line.of === 'onced').map((line) => [
    whole(line.ids), line.batch, whole(line.per_second), direct(line) ? whole(direct(line).per_second) : '', quotient(line), figure(line.cpu_us_per_event)]))}

${table(['ids', 'bytes for a sealed id'], of('size').filter((line) => line.bytes_per_sealed_id > 0).map((line) => [whole(line.ids), figure(line.bytes_per_sealed_id)]))}

${table(['ids', 'file', 'start s'], start.map((line) => [whole(line.ids), line.cache === 'cold' ? 'not in the page cache' : 'in the page cache', figure(line.wall_s)]))}

One ordering key with so many events waiting for it, 100,000 others held:

${table(['', 'waiting', 'events a second', 'µs of processor for one'], order.map((line) => [line.what, whole(line.waiting), whole(line.per_second), figure(line.cpu_us_per_event)]))}
${busyNote([taken])}`;
  },
};

function wantedTable(results) {
  const rows = wanted.flatMap((row) => {
    const result = results[row.part];
    if (!result) return [];
    if (row.applies && !row.applies(result)) return [[row.what, bound(row), row.aim ?? '', 'not measured (`--full`)', '']];
    const value = row.reached(result, result.machine);
    return value === undefined ? [] : [[row.what, bound(row), row.aim ?? '', `**${figure(value)}**`, isReached(row, value) ? 'yes' : 'no']];
  });
  return table(['figure', 'wanted', 'aim', 'measured', 'reached'], rows);
}

const bound = (row) => (row.least !== undefined ? `≥ ${row.least}` : `≤ ${row.most}`);

function limits(results) {
  const missed = wanted.filter((row) => {
    const value = results[row.part] && row.reached(results[row.part], results[row.part].machine);
    return row.limit && value !== undefined && !isReached(row, value);
  });
  const texts = [...new Set(missed.map((row) => row.limit))];
  return texts.length === 0 ? '' : `\n## What limits the figures that are missed\n\n${texts.join('\n\n')}\n`;
}

export function report() {
  const results = Object.fromEntries(Object.keys(sections).map((name) => [name, load(name)]).filter(([, result]) => result));
  const parts = Object.entries(results).map(([name, result]) => `${sections[name](result)}\n${where(result)}\n`);
  fs.writeFileSync(page, `# Performance

Written by \`scripts/bench report\` from \`build/bench/*.json\`; do not edit. Only ratios, taken in turns in one run, say
something about another machine; *others* is how many processors programs that are no part of the run kept busy.

${wantedTable(results)}
${limits(results)}
${parts.join('\n')}`);
  return page;
}
