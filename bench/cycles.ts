// B-cycles: whether anything stays behind in the process over thousands of tasks, from create to end.

import type { Block } from './block.ts';
import { startChild } from './children.ts';
import type { LoadAnswer } from './messages.ts';
import { print, type Row } from './report.ts';
import { handles } from './streams.ts';
import { callOf, startTaskferry } from './taskferry.ts';

const parts = 4;
const cyclesPerPart = 500;
const mib = 1_024 * 1_024;

export const benchCycles: Block = async ({ folder, facts }) => {
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const server = await startTaskferry({ folder, upstream: upstream.origin });
  const rows: Row[] = [];
  // The first part loads and compiles; growth in the later ones would be a leak.
  for (let part = 1; part <= parts; part++) {
    await load.ask<LoadAnswer>({
      kind: 'run',
      origin: server.origin,
      requests: [callOf('bench_quick')],
      clients: 16,
      ms: 60_000,
      count: cyclesPerPart,
      expect: '"resultType":"task"',
    });
    await untilEnded(server.origin, part * cyclesPerPart);
    const memory = await server.memory();
    rows.push({
      'tasks ended': part * cyclesPerPart,
      'heap MiB': memory.heap / mib,
      'external MiB': memory.external / mib,
      'RSS MiB': memory.rss / mib,
      handles: handles(memory),
    });
  }
  print('cycles', 'Heap and handles over tasks that were created and ended', rows, facts);
  await Promise.all([server, load, upstream].map((child) => child.stop()));
};

async function untilEnded(origin: string, count: number): Promise<void> {
  const until = performance.now() + 60_000;
  for (;;) {
    const text = await (await fetch(`${origin}/metrics`)).text();
    const ended = /taskferry_tasks_ended_total\{.*outcome="succeeded"\} (\d+)/.exec(text)?.[1];
    if (Number(ended) >= count) return;
    if (performance.now() > until) throw new Error(`only ${ended} of ${count} tasks have ended`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
