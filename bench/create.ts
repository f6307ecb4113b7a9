// B-create: what taskferry adds to a create, against posting the same job to the upstream directly.

import { type Block, rounds } from './block.ts';
import { type Child, startChild } from './children.ts';
import type { LoadAnswer, RequestTemplate } from './messages.ts';
import { print, type Row } from './report.ts';
import { medianOf } from './stats.ts';
import { callOf, startTaskferry } from './taskferry.ts';

const direct: RequestTemplate = {
  path: '/jobs',
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({ branch: 'main', count: 1, key: 'b2a0fe1c-7a3e-4d5f-9d8a-1f2e3d4c5b6a' }),
};

const warmMs = 6_000;
const runMs = 1_200;

export const benchCreate: Block = async ({ folder, facts, loop }) => {
  const upstream = await startChild('upstream-child.ts');
  const load = await startChild('load-child.ts');
  const server = await startTaskferry({ folder, upstream: upstream.origin });
  const rows: Row[] = [];
  // Code that has not been compiled yet is several times slower; one client alone would measure that.
  await post(load, upstream.origin, direct, 64, runMs, '"id"');
  await post(load, server.origin, callOf('bench_idle'), 64, warmMs, '"resultType":"task"');
  for (const clients of [1, 16, 64]) {
    const results = await rounds(async () => {
      const base = await post(load, upstream.origin, direct, clients, runMs, '"id"');
      await server.begin(clients > 1);
      const ours = await post(
        load,
        server.origin,
        callOf('bench_idle'),
        clients,
        runMs,
        '"resultType":"task"',
      );
      return { base, ours, usage: await server.usage() };
    });
    rows.push({
      clients,
      'direct p50 ms': medianOf(results, ({ base }) => base.p50),
      'p99 ms': medianOf(results, ({ base }) => base.p99),
      'taskferry p50 ms': medianOf(results, ({ ours }) => ours.p50),
      'p99 ms ': medianOf(results, ({ ours }) => ours.p99),
      'added p50 ms': medianOf(results, ({ base, ours }) => ours.p50 - base.p50),
      'added p99 ms': medianOf(results, ({ base, ours }) => ours.p99 - base.p99),
      'p50 ratio': medianOf(results, ({ base, ours }) => ours.p50 / base.p50),
      'creates/s': medianOf(results, ({ ours }) => ours.perSecond),
      'CPU µs each': medianOf(results, ({ ours, usage }) => usage.cpuUs / ours.count),
    });
    if (clients > 1) {
      loop.push({
        point: `creates, ${clients} clients`,
        p50: medianOf(results, ({ usage }) => usage.loopP50),
        p99: medianOf(results, ({ usage }) => usage.loopP99),
        max: medianOf(results, ({ usage }) => usage.loopMax),
      });
    }
  }
  print('create', 'Create: tools/call through taskferry against POST to the upstream', rows, facts);
  await Promise.all([server, load, upstream].map((child) => child.stop()));
};

function post(
  load: Child,
  origin: string,
  request: RequestTemplate,
  clients: number,
  ms: number,
  expect: string,
): Promise<LoadAnswer> {
  return load.ask<LoadAnswer>({ kind: 'run', origin, requests: [request], clients, ms, expect });
}
