// B-poll: polls per second through scheduler, HTTP driver, mapping and store, against a bare undici loop.
//
// The server runs the whole time and is halted (SIGSTOP) while the bare loop has its turn.

import { join } from 'node:path';
import { upstreamConcurrency } from './adapter.ts';
import { type Block, rounds } from './block.ts';
import { type Child, startChild } from './children.ts';
import type { LoadAnswer, Looks, Usage } from './messages.ts';
import { print, type Row } from './report.ts';
import { seedStore } from './seed.ts';
import { medianOf } from './stats.ts';
import { startTaskferry, type Taskferry } from './taskferry.ts';

/** At 100 ms each they ask for more polls than one process can make: the measured rate is its limit. */
const taskCount = 3_000;
const windowMs = 1_500;
/** After a change of mode, until all that was under way before has gone. */
const settleMs = 300;

export const benchPoll: Block = async ({ folder, facts, loop }) => {
  const store = join(folder, 'poll.db');
  await seedStore({ file: store, tool: 'bench_busy', count: taskCount, dueInMs: 2_000, intervalMs: 100 });
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const server = await startTaskferry({ folder, upstream: upstream.origin, store });
  await untilSaturated(upstream);

  const results = await rounds(async () => {
    server.halt();
    const base = await load.ask<LoadAnswer>({
      kind: 'run',
      origin: upstream.origin,
      requests: Array.from({ length: taskCount }, (_, i) => ({
        path: `/jobs/${i + 1}`,
        method: 'GET',
        headers: { accept: 'application/json' },
      })),
      clients: upstreamConcurrency,
      ms: windowMs,
      expect: '"state":"running"',
    });
    server.resume();
    const still = await pollWindow(server, upstream, false);
    const moving = await pollWindow(server, upstream, true);
    return { base, still, moving };
  });
  const bareCpu = medianOf(results, ({ base }) => base.cpuUs / base.count);
  const rows: Row[] = [
    {
      polls: 'bare undici loop',
      'polls/s': medianOf(results, ({ base }) => base.perSecond),
      'rate ratio': 1,
      'CPU µs each': bareCpu,
      'CPU ratio': 1,
    },
    ...(['still', 'moving'] as const).map((mode) => ({
      polls: mode === 'still' ? 'taskferry, nothing new' : 'taskferry, progress at every poll',
      'polls/s': medianOf(results, (round) => round[mode].perSecond),
      'rate ratio': medianOf(results, (round) => round[mode].perSecond / round.base.perSecond),
      'CPU µs each': medianOf(results, (round) => round[mode].cpuEach),
      'CPU ratio': medianOf(results, (round) => (round[mode].cpuEach / round.base.cpuUs) * round.base.count),
    })),
  ];
  print('poll', `Polls of ${taskCount} tasks, ${upstreamConcurrency} at once`, rows, facts);
  for (const mode of ['still', 'moving'] as const) {
    loop.push({
      point: mode === 'still' ? 'polls, nothing new' : 'polls, progress at every poll',
      p50: medianOf(results, (round) => round[mode].loopP50),
      p99: medianOf(results, (round) => round[mode].loopP99),
      max: medianOf(results, (round) => round[mode].loopMax),
    });
  }
  await Promise.all([server, load, upstream].map((child) => child.stop()));
};

async function pollWindow(
  server: Taskferry,
  upstream: Child,
  moving: boolean,
): Promise<Usage & { perSecond: number; cpuEach: number }> {
  await upstream.ask({ kind: 'mode', moving });
  await pause(settleMs);
  await server.begin(true);
  const before = await upstream.ask<Looks>({ kind: 'looks' });
  await pause(windowMs);
  const after = await upstream.ask<Looks>({ kind: 'looks' });
  const usage = await server.usage();
  const polls = after.looks - before.looks;
  return {
    ...usage,
    perSecond: polls / ((after.at - before.at) / 1_000),
    cpuEach: usage.cpuUs / polls,
  };
}

/** The tasks are due some seconds after the start; each has been polled when it goes on at full speed. */
async function untilSaturated(upstream: Child): Promise<void> {
  const until = performance.now() + 30_000;
  while ((await upstream.ask<Looks>({ kind: 'looks' })).looks < 2 * taskCount) {
    if (performance.now() > until) throw new Error('the tasks are not being polled');
    await pause(100);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
