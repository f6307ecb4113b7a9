// B-get: tasks/get against a bare node:http server that reads the same request and answers as many bytes.

import { type Block, rounds } from './block.ts';
import { startChild } from './children.ts';
import type { LoadAnswer } from './messages.ts';
import { print, type Row } from './report.ts';
import { medianOf } from './stats.ts';
import { callOf, mcp, startTaskferry } from './taskferry.ts';

const taskCount = 200;
const runMs = 1_200;

export const benchGet: Block = async ({ folder, facts, loop }) => {
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const server = await startTaskferry({ folder, upstream: upstream.origin });
  const created = await load.ask<LoadAnswer>({
    kind: 'run',
    origin: server.origin,
    requests: [callOf('bench_idle')],
    clients: 16,
    ms: 30_000,
    count: taskCount,
    expect: '"resultType":"task"',
    keep: true,
  });
  const gets = created.replies.map((reply) => mcp('tasks/get', { taskId: taskIdIn(reply) }));
  const run = (origin: string, requests: typeof gets, clients: number, ms: number, keep = false) =>
    load.ask<LoadAnswer>({
      kind: 'run',
      origin,
      requests,
      clients,
      ms,
      expect: '"status":"working"',
      keep,
      ...(keep && { count: 1 }),
    });
  const [body] = (await run(server.origin, gets, 1, 30_000, true)).replies;
  await upstream.ask({ kind: 'fixed', body });
  const bare = gets.map((request) => ({ ...request, path: '/fixed' }));

  const rows: Row[] = [];
  await run(upstream.origin, bare, 16, 1_000);
  await run(server.origin, gets, 16, 2_000);
  for (const clients of [1, 16]) {
    const results = await rounds(async () => {
      const base = await run(upstream.origin, bare, clients, runMs);
      await server.begin(clients > 1);
      const ours = await run(server.origin, gets, clients, runMs);
      return { base, ours, usage: await server.usage() };
    });
    rows.push({
      clients,
      'bare gets/s': medianOf(results, ({ base }) => base.perSecond),
      'p99 ms': medianOf(results, ({ base }) => base.p99),
      'taskferry gets/s': medianOf(results, ({ ours }) => ours.perSecond),
      'p99 ms ': medianOf(results, ({ ours }) => ours.p99),
      'rate ratio': medianOf(results, ({ base, ours }) => ours.perSecond / base.perSecond),
      'CPU µs each': medianOf(results, ({ ours, usage }) => usage.cpuUs / ours.count),
    });
    if (clients > 1) {
      loop.push({
        point: `tasks/get, ${clients} clients`,
        p50: medianOf(results, ({ usage }) => usage.loopP50),
        p99: medianOf(results, ({ usage }) => usage.loopP99),
        max: medianOf(results, ({ usage }) => usage.loopMax),
      });
    }
  }
  print('get', `tasks/get against bare node:http, replies of ${body?.length ?? 0} bytes`, rows, facts);
  await Promise.all([server, load, upstream].map((child) => child.stop()));
};

function taskIdIn(reply: string): string {
  const { result } = JSON.parse(reply) as { result: { taskId: string } };
  return result.taskId;
}
