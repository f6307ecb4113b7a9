// B-store: durable creates per second through the store, against a bare group-commit loop.

import { type Block, rounds } from './block.ts';
import { startChild } from './children.ts';
import type { StoreAnswer, StoreQuestion } from './messages.ts';
import { print, type Row } from './report.ts';
import { medianOf } from './stats.ts';

export const benchStore: Block = async ({ folder, facts }) => {
  const child = await startChild('store-child.ts');
  const run = (subject: StoreQuestion['subject'], clients: number, count: number): Promise<StoreAnswer> =>
    child.ask<StoreAnswer>({ subject, folder, clients, count } satisfies StoreQuestion);
  const rows: Row[] = [];
  await run('bare', 64, 5_000);
  await run('taskferry', 64, 5_000);
  for (const clients of [1, 16, 64, 256]) {
    const count = clients === 1 ? 700 : 6_000;
    const results = await rounds(async () => ({
      base: await run('bare', clients, count),
      ours: await run('taskferry', clients, count),
    }));
    rows.push({
      clients,
      'bare creates/s': medianOf(results, ({ base }) => base.perSecond),
      'store creates/s': medianOf(results, ({ ours }) => ours.perSecond),
      'rate ratio': medianOf(results, ({ base, ours }) => ours.perSecond / base.perSecond),
      'store p50 ms': medianOf(results, ({ ours }) => ours.p50),
      'p99 ms': medianOf(results, ({ ours }) => ours.p99),
      'loop p99 ms': medianOf(results, ({ ours }) => ours.loopP99),
    });
  }
  print('store', 'Durable creates in the SQLite store against a bare group-commit loop', rows, facts);
  await child.stop();
};
