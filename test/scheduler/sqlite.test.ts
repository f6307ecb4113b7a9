// The local scheduler on a real SQLite store, in real time, with a hundred thousand tasks.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createBudget } from '../../src/drivers/budget.ts';
import { startLocalScheduler } from '../../src/scheduler/local.ts';
import { createSteadyClock } from '../../src/steady-clock.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { makeEntry } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

const tasks = 100_000;
const places = 8;

/** Bytes in use on the heap after a full collection. */
function heapUsed(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed;
}

/** Leaves a store with a hundred thousand tasks of the adapter `busy`, overdue for a minute: copies of one. */
async function prepareStore(path: string): Promise<void> {
  const now = Date.now();
  const entry = makeEntry(
    { adapter: 'busy', createdAt: now, expiresAt: now + 86_400_000 },
    { schedule: { dueAt: now - 60_000, intervalMs: 5_000 } },
  );
  const store = await openSqliteStore({ path });
  await store.insert(entry);
  await store.close();
  const db = new DatabaseSync(path);
  const copies = `WITH RECURSIVE copy(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM copy WHERE n < ${tasks - 1})`;
  const id = "printf('0%035d', n)";
  db.exec(`
    BEGIN;
    INSERT INTO tasks
      ${copies} SELECT n + 1, caller, ${id}, version, stage, adapter, digest, tool, start_key, expires_at, state, data, outcome
      FROM tasks, copy;
    INSERT INTO inputs ${copies} SELECT n + 1, input FROM inputs, copy;
    INSERT INTO schedule ${copies} SELECT ${id}, caller, adapter, due_at, interval_ms, 0, deadline FROM schedule, copy;
    COMMIT`);
  db.close();
}

it('follows a hundred thousand overdue tasks within the budget, and delays nobody else', {
  timeout: 60_000,
}, async () => {
  const path = join(tempDir(), 'tasks.db');
  await prepareStore(path);
  const heapBefore = heapUsed();
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  expect(await store.counts()).toEqual([{ adapter: 'busy', stage: 'following', count: tasks }]);

  const count = { busy: 0, small: 0, underWay: 0, most: 0, errors: 0 };
  const clock = createSteadyClock();
  const limits = { concurrency: places, rate: undefined };
  const budgets = { busy: createBudget(limits, clock), small: createBudget(limits, clock) };
  const complain = (): void => void count.errors++;
  const scheduler = startLocalScheduler({
    store,
    clock,
    log: { info: () => {}, warn: complain, error: complain },
    callsPerSecond: () => 20_000,
    budget: (adapter) => (adapter === 'busy' ? budgets.busy : budgets.small),
    expire: async () => {},
    async follow(ref) {
      const stored = await store.get(ref);
      if (stored === undefined) throw new Error('the task is gone');
      const { adapter, version } = stored.task;
      const release = await (adapter === 'busy' ? budgets.busy : budgets.small).acquire();
      if (adapter === 'busy') {
        count.busy++;
        count.most = Math.max(count.most, ++count.underWay);
      } else count.small++;
      await store.reschedule(ref, { dueAt: Date.now() + 3_600_000, intervalMs: 5_000 }, version);
      if (adapter === 'busy') count.underWay--;
      release();
    },
  });
  onTestFinished(() => scheduler.stop());
  await scheduler.started;
  await vi.waitFor(() => expect(count.busy).toBeGreaterThan(500), { timeout: 20_000, interval: 5 });

  const busyBefore = count.busy;
  await store.insert(
    makeEntry(
      { adapter: 'small', createdAt: Date.now() },
      { schedule: { dueAt: Date.now() + 30, intervalMs: 5_000 } },
    ),
  );
  scheduler.wake('small', Date.now() + 30);
  await vi.waitFor(() => expect(count.small).toBe(1), { timeout: 20_000, interval: 1 });
  // Far fewer than the backlog that was due before it.
  expect(count.busy - busyBefore).toBeLessThan(tasks / 20);

  await vi.waitFor(() => expect(count.busy).toBeGreaterThan(2_000), { timeout: 20_000, interval: 5 });
  await scheduler.stop();
  expect(count.most).toBe(places);
  expect(count.underWay).toBe(0);
  expect(count.errors).toBe(0);
  // An object per task, however small, would take more than 60 bytes of each.
  expect((heapUsed() - heapBefore) / tasks).toBeLessThan(60);
});
