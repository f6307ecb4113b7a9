// Fills a store with tasks that are being followed, as a server that ran for long would leave it.

import { loadAdapter } from '../src/config/load.ts';
import { formats } from '../src/server.ts';
import { openSqliteStore } from '../src/stores/sqlite.ts';
import { makeEntry } from '../test/helpers/task-fixture.ts';
import { adapterText } from './adapter.ts';

export interface SeedOptions {
  file: string;
  tool: 'bench_idle' | 'bench_busy';
  count: number;
  /** Milliseconds from now until all of them are due; negative: overdue. */
  dueInMs: number;
  intervalMs: number;
}

const hour = 3_600_000;
/** Inserts that share a commit. */
const batch = 1_000;

/** @returns the ids, oldest first. */
export async function seedStore({ file, tool, count, dueInMs, intervalMs }: SeedOptions): Promise<string[]> {
  const { adapter } = loadAdapter(adapterText, { file: 'bench.yaml', formats });
  if (adapter === undefined) throw new Error('the adapter of the benchmarks does not load');
  const store = await openSqliteStore({ path: file });
  const now = Date.now();
  const ids: string[] = [];
  for (let done = 0; done < count; done += batch) {
    const entries = Array.from({ length: Math.min(batch, count - done) }, (_, i) =>
      makeEntry(
        {
          adapter: 'bench',
          digest: adapter.digest,
          tool,
          args: { branch: 'main', count: 1n },
          message: '3/40 steps, compiling',
          progress: '3/40 steps, compiling',
          job: { id: BigInt(done + i + 1) },
          create: { step: 1, sentAt: now, doubt: undefined },
          createdAt: now,
          deadline: now + 24 * hour,
          expiresAt: now + 25 * hour,
        },
        { schedule: { dueAt: now + dueInMs, intervalMs }, adapterText },
      ),
    );
    await Promise.all(entries.map((entry) => store.insert(entry)));
    for (const { task } of entries) ids.push(task.id);
  }
  await store.close();
  return ids;
}
