// Measures durable creates, through the store or through the bare loop, in a process of its own.

import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { openSqliteStore } from '../src/stores/sqlite.ts';
import { encodeTask } from '../src/stores/task-row.ts';
import { makeEntry } from '../test/helpers/task-fixture.ts';
import { answerQuestions, sayReady } from './answering.ts';
import { openBareStore } from './bare-store.ts';
import type { StoreAnswer, StoreQuestion } from './messages.ts';
import { percentile } from './stats.ts';

let files = 0;

function entry(): ReturnType<typeof makeEntry> {
  const now = Date.now();
  return makeEntry(
    { createdAt: now, args: { branch: 'main', count: 1n } },
    { schedule: { dueAt: now + 60_000, intervalMs: 5_000 } },
  );
}

async function ours(file: string): Promise<{ insert(): Promise<unknown>; close(): Promise<void> }> {
  const store = await openSqliteStore({ path: file });
  return { insert: () => store.insert(entry()), close: () => store.close() };
}

async function bare(file: string): Promise<{ insert(): Promise<unknown>; close(): Promise<void> }> {
  const store = await openBareStore(file);
  const { state, data } = encodeTask(entry().task);
  return {
    insert() {
      const { task, schedule } = entry();
      return store.insert({ id: task.id, due: schedule.dueAt, body: state + data });
    },
    close: () => store.close(),
  };
}

async function measure({ subject, folder, clients, count }: StoreQuestion): Promise<StoreAnswer> {
  const file = join(folder, `store-${files++}.db`);
  const store = await (subject === 'bare' ? bare(file) : ours(file));
  const histogram = monitorEventLoopDelay({ resolution: 1 });
  const times: number[] = [];
  let left = count;
  histogram.enable();
  const started = performance.now();
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (left-- > 0) {
        const asked = performance.now();
        await store.insert();
        times.push(performance.now() - asked);
      }
    }),
  );
  const seconds = (performance.now() - started) / 1_000;
  histogram.disable();
  await store.close();
  return {
    perSecond: count / seconds,
    p50: percentile(times, 50),
    p99: percentile(times, 99),
    loopP99: histogram.percentile(99) / 1e6,
  };
}

answerQuestions<StoreQuestion>(measure);
sayReady();
