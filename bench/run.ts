// `npm run bench`: runs the benchmarks one after the other and prints what they measured. What the numbers mean
// stands in README.md. `npm run bench -- create poll` runs these two only.

import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bench, Block } from './block.ts';
import { stopChildren } from './children.ts';
import { benchCreate } from './create.ts';
import { benchCycles } from './cycles.ts';
import { benchGet } from './get.ts';
import { benchMemory } from './memory.ts';
import { benchPoll } from './poll.ts';
import { machine, print } from './report.ts';
import { median } from './stats.ts';
import { benchStore } from './store.ts';
import { benchStreams } from './streams.ts';

const blocks: { readonly [name: string]: Block } = {
  create: benchCreate,
  get: benchGet,
  store: benchStore,
  poll: benchPoll,
  memory: benchMemory,
  streams: benchStreams,
  cycles: benchCycles,
};

/** Median milliseconds of appending 4 KiB and waiting for the disk. */
function fsyncProbe(folder: string): number {
  const file = openSync(join(folder, 'fsync'), 'w');
  const page = Buffer.alloc(4_096, 1);
  const times = Array.from({ length: 200 }, () => {
    const started = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    return performance.now() - started;
  });
  closeSync(file);
  return median(times);
}

const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !(name in blocks));
if (unknown.length > 0) {
  console.error(`there is no benchmark ${unknown.join(', ')}; there are ${Object.keys(blocks).join(', ')}`);
  process.exit(2);
}

const started = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'taskferry-bench-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
try {
  const bench: Bench = { folder, facts: machine(fsyncProbe(folder)), loop: [] };
  const { node, cpus, load, fsyncMs } = bench.facts;
  console.log(`node ${node}, ${cpus} CPUs, load ${load}, a 4 KiB append reaches the disk in ${fsyncMs} ms`);
  for (const [name, run] of Object.entries(blocks)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    await run(bench);
  }
  if (bench.loop.length > 0) {
    const rows = bench.loop.map(({ point, p50, p99, max }) => ({
      point,
      'p50 ms': p50,
      'p99 ms': p99,
      'max ms': max,
    }));
    print(
      'loop',
      'Event-loop delay of the server at the heaviest points (about 1 ms when idle)',
      rows,
      bench.facts,
    );
  }
  console.log(`\n${Math.round((performance.now() - started) / 1_000)} s in all`);
} finally {
  await stopChildren();
}
