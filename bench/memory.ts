// B-memory: what 100,000 stored tasks cost a server that follows them: memory, and time to start.

import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { type Block, rounds } from './block.ts';
import { startChild } from './children.ts';
import type { LoadAnswer, Memory, Usage } from './messages.ts';
import { print, type Row } from './report.ts';
import { seedStore } from './seed.ts';
import { medianOf } from './stats.ts';
import { mcp, startTaskferry } from './taskferry.ts';

const taskCount = 100_000;
const getCount = 800;
const mib = 1_024 * 1_024;

interface Started {
  startMs: number;
  idle: Memory;
  /** After reads of `getCount` different tasks, which fill the caches. */
  read: Memory;
  usage: Usage;
}

export const benchMemory: Block = async ({ folder, facts, loop }) => {
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const few = join(folder, 'few.db');
  const many = join(folder, 'many.db');
  const overdue = join(folder, 'overdue.db');
  const seed = { tool: 'bench_idle', dueInMs: 3_600_000, intervalMs: 3_600_000 } as const;
  const fewIds = await seedStore({ ...seed, file: few, count: 1 });
  const manyIds = await seedStore({ ...seed, file: many, count: taskCount });

  const measure = async (store: string, ids: readonly string[], restMs: number): Promise<Started> => {
    const server = await startTaskferry({ folder, upstream: upstream.origin, store });
    await server.begin(true);
    await new Promise((resolve) => setTimeout(resolve, restMs));
    const usage = await server.usage();
    const idle = await server.memory();
    const every = Math.max(1, Math.floor(ids.length / getCount));
    const wanted = ids.filter((_, i) => i % every === 0);
    await load.ask<LoadAnswer>({
      kind: 'run',
      origin: server.origin,
      requests: wanted.map((taskId) => mcp('tasks/get', { taskId })),
      clients: 8,
      ms: 60_000,
      count: getCount,
      expect: '"status":"working"',
    });
    const read = await server.memory();
    const { startMs } = server;
    await server.stop();
    return { startMs, idle, read, usage };
  };

  const results = await rounds(async () => ({
    few: await measure(few, fewIds, 500),
    many: await measure(many, manyIds, 500),
  }));
  // All overdue at the start: what a long stop leaves behind. The tasks are spread over minutes.
  copyFileSync(many, overdue);
  const db = new DatabaseSync(overdue);
  db.exec(`UPDATE schedule SET due_at = ${Date.now() - 60_000}`);
  db.close();
  const late = await measure(overdue, manyIds, 3_000);

  const row = (tasks: string, of: (field: (started: Started) => number) => number): Row => ({
    tasks,
    'start ms': of(({ startMs }) => startMs),
    'RSS MiB': of(({ idle }) => idle.rss / mib),
    'heap MiB': of(({ idle }) => idle.heap / mib),
    'RSS after reads': of(({ read }) => read.rss / mib),
    'heap after reads': of(({ read }) => read.heap / mib),
  });
  print(
    'memory',
    `Memory and start with ${taskCount} tasks, and after ${getCount} reads`,
    [
      row('1', (field) => medianOf(results, (round) => field(round.few))),
      row(`${taskCount}`, (field) => medianOf(results, (round) => field(round.many))),
      row('more by', (field) => medianOf(results, (round) => field(round.many) - field(round.few))),
      row('ratio', (field) => medianOf(results, (round) => field(round.many) / field(round.few))),
      row(`${taskCount}, all overdue`, (field) => field(late)),
    ],
    facts,
  );
  const { loopP50: p50, loopP99: p99, loopMax: max } = late.usage;
  loop.push({ point: `3 s after a start with ${taskCount} overdue tasks`, p50, p99, max });
  await Promise.all([load, upstream].map((child) => child.stop()));
};
