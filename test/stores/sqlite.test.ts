// The SQLite store keeps the store contract, also where it works in slices.

import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { describeStore } from '../contracts/store-contract.ts';
import { makeEntry, fixtureTime as now } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

describeStore('the SQLite store', {
  open: (directory) => openSqliteStore({ path: join(directory, 'tasks.db') }),
  outlivesClose: true,
});

it('spreads a backlog of several slices evenly', async () => {
  const store = await openSqliteStore({ path: join(tempDir(), 'tasks.db') });
  onTestFinished(() => store.close());
  const schedule = { dueAt: now - 1, intervalMs: 5_000 };
  await Promise.all(Array.from({ length: 5_000 }, () => store.insert(makeEntry({}, { schedule }))));
  expect(await store.spread('builds', now, 10_000)).toBe(5_000);
  for (const part of [0.1, 0.5, 0.9]) {
    const due = await store.dueBefore('builds', now + part * 10_000 - 1, 10_000);
    expect(due).toHaveLength(part * 5_000);
  }
});
