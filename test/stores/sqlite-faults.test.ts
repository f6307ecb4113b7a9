// What the SQLite store does when the disk is full, when an operation breaks, and when its thread dies.

import { copyFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Worker } from 'node:worker_threads';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openWriteConnections, type WriteConnections } from '../../src/stores/sqlite/database.ts';
import { createPrivateFile } from '../../src/stores/sqlite/file.ts';
import type { Operation } from '../../src/stores/sqlite/messages.ts';
import { createRounds, type RunRound } from '../../src/stores/sqlite/rounds.ts';
import { openSqliteStore, type SqliteStoreOptions } from '../../src/stores/sqlite.ts';
import { RecordError, type Store, unendedGrace } from '../../src/stores/store.ts';
import { encodeTask } from '../../src/stores/task-row.ts';
import { fixtureTime, makeEntry, makeTask, nextVersion } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

async function open(options: Partial<SqliteStoreOptions> = {}): Promise<Store> {
  const store = await openSqliteStore({ path: join(tempDir(), 'tasks.db'), ...options });
  onTestFinished(() => store.close());
  return store;
}

describe('a full disk', () => {
  it('refuses writes with store_full, still reads, and works again when there is space', async () => {
    const store = await open({ maxPages: 200 });
    const stored = [];
    let refusal: unknown;
    while (refusal === undefined && stored.length < 10_000) {
      const entry = makeEntry({ expiresAt: fixtureTime + stored.length });
      try {
        await store.insert(entry);
        stored.push(entry.task);
      } catch (error) {
        refusal = error;
      }
    }
    expect(refusal).toMatchObject({
      name: 'StoreError',
      code: 'store_full',
      fix: expect.stringContaining('disk space'),
    });
    await expect(store.check()).rejects.toMatchObject({ code: 'store_full' });
    const [first] = stored;
    expect(await store.get(first ?? makeTask())).toMatchObject({ task: first });
    expect(await store.counts()).toEqual([{ adapter: 'builds', stage: 'following', count: stored.length }]);

    // Purging is what makes space inside the file.
    expect(await store.purge(fixtureTime + 100 + unendedGrace, 100)).toBe(100);
    await expect(store.check()).resolves.toBeUndefined();
    expect(await store.insert(makeEntry())).toEqual({ kind: 'inserted' });
  });

  it('lets small writes through that share a commit with one that does not fit', async () => {
    const store = await open({ maxPages: 200 });
    const small = [makeEntry(), makeEntry()];
    const huge = makeEntry({ args: { text: 'x'.repeat(2_000_000) } });
    const results = await Promise.allSettled(
      [small[0], huge, small[1]].map((entry) => store.insert(entry ?? huge)),
    );
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(results[1]).toMatchObject({ reason: { code: 'store_full' } });
    for (const { task } of small) expect((await store.get(task))?.task).toEqual(task);
    expect(await store.get(huge.task)).toBeUndefined();
  });
});

describe('files that change under a running store', () => {
  it.each([
    ['removed', (file: string) => rmSync(file)],
    [
      'replaced',
      (file: string) => {
        copyFileSync(file, `${file}.copy`);
        renameSync(`${file}.copy`, file);
      },
    ],
  ])('are noticed by check, and refuse new tasks, when one is %s', async (_what, change) => {
    const noticed = {
      code: 'store_failed',
      message: expect.stringContaining('removed or replaced while taskferry runs'),
      fix: 'Restart taskferry.',
    };
    for (const suffix of ['', '.lock']) {
      const path = join(tempDir(), 'tasks.db');
      const store = await open({ path });
      await store.insert(makeEntry());
      await expect(store.check()).resolves.toBeUndefined();
      change(path + suffix);
      await expect(store.check()).rejects.toMatchObject(noticed);
      // No job is started that only a lost file would know.
      await expect(store.insert(makeEntry())).rejects.toMatchObject(noticed);
    }
  });
});

it('a check reads what is stored, so that it fails when the file is damaged while it runs', async () => {
  const path = join(tempDir(), 'tasks.db');
  const first = await openSqliteStore({ path });
  await Promise.all(Array.from({ length: 3_000 }, () => first.insert(makeEntry())));
  await first.close();
  const store = await open({ path });
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill(0xab, 65_536), { flag: 'r+' });
  await expect(store.check()).rejects.toMatchObject({ code: 'store_corrupt' });
});

describe('a record that is damaged', () => {
  it.each([
    ['tasks', 'state', (store: Store, ref: Parameters<Store['get']>[0]) => store.get(ref)],
    ['tasks', 'data', (store: Store, ref: Parameters<Store['get']>[0]) => store.get(ref)],
    [
      'inputs',
      'input',
      async (store: Store, ref: Parameters<Store['get']>[0]) => (await store.get(ref))?.task.args,
    ],
  ])('fails its own reads only, when it is in %s.%s', async (table, column, read) => {
    const path = join(tempDir(), 'tasks.db');
    const store = await open({ path });
    const broken = makeEntry({ expiresAt: fixtureTime });
    const healthy = makeEntry();
    await store.insert(broken);
    await store.insert(healthy);
    const db = new DatabaseSync(path);
    db.prepare(
      `UPDATE ${table} SET ${column} = '{' WHERE number = (SELECT number FROM tasks WHERE id = ?)`,
    ).run(broken.task.id);
    db.close();
    const failure = await read(store, broken.task).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(RecordError);
    expect(failure).toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining("the record of a task of run_build (builds) can't be read"),
    });
    expect((await store.get(healthy.task))?.task).toEqual(healthy.task);
    await expect(store.check()).resolves.toBeUndefined();
    expect(await store.purge(fixtureTime + unendedGrace, 10)).toBe(1);
  });
});

it('writes large arguments once, not again with every save', async () => {
  const path = join(tempDir(), 'tasks.db');
  const store = await open({ path });
  const entry = makeEntry({ args: { text: 'x'.repeat(1_000_000) } });
  await store.insert(entry);
  const before = statSync(`${path}-wal`).size;
  let { task } = entry;
  for (let i = 0; i < 20; i++) {
    task = nextVersion(task, { message: `step ${i}` });
    expect(await store.save({ task, durable: false })).toBe(true);
  }
  expect(statSync(`${path}-wal`).size - before).toBeLessThan(500_000);
  expect((await store.get(task))?.task).toEqual(task);
});

describe('a round of operations', () => {
  function connect(): { connections: WriteConnections; run: RunRound } {
    const file = join(tempDir(), 'tasks.db');
    createPrivateFile(file);
    const connections = openWriteConnections({ file });
    onTestFinished(() => {
      connections.hint.close();
      connections.durable.close();
    });
    return { connections, run: createRounds(connections, file) };
  }

  const insertOf = ({
    task,
    schedule,
    leaseUntil,
    adapterText,
  }: ReturnType<typeof makeEntry>): Operation => ({
    kind: 'insert',
    row: encodeTask(task),
    ...schedule,
    deadline: task.deadline,
    leaseUntil,
    text: adapterText,
  });

  it('fails only the operation that breaks, and answers in order', () => {
    const { run } = connect();
    const entry = makeEntry();
    const twice = makeEntry(entry.task, { adapterText: 'never stored' });
    const results = run([
      insertOf(entry),
      insertOf(twice),
      {
        kind: 'save',
        row: encodeTask(nextVersion(entry.task)),
        outcome: null,
        schedule: { kind: 'keep' },
        durable: false,
      },
      { kind: 'setting', name: 'a', value: 'b' },
    ]);
    expect(results).toMatchObject([
      { ok: true },
      { ok: false, failure: { code: 'store_failed' } },
      { ok: true, answer: true },
      { ok: true, answer: 'b' },
    ]);
  });

  it('goes to disk before its answer when any operation in it is a promise, and only then', () => {
    const { connections, run } = connect();
    const synchronous = ({ durable, hint }: WriteConnections): unknown[] =>
      [durable, hint].map((db) => db.prepare('PRAGMA synchronous').get()?.synchronous);
    const [full, normal] = [2, 1];
    expect(synchronous(connections)).toEqual([full, normal]);

    const changes = (): number[] =>
      [connections.durable, connections.hint].map((db) =>
        Number(db.prepare('SELECT total_changes() AS changes').get()?.changes),
      );
    /** Which connection committed the operations. */
    const used = (...operations: Operation[]): string => {
      const before = changes();
      expect(run(operations).every(({ ok }) => ok)).toBe(true);
      const [durable, hint] = changes().map((count, i) => count > (before[i] ?? 0));
      return durable === hint ? 'both or none' : durable ? 'durable' : 'hint';
    };
    const entry = makeEntry();
    const save = (version: number, durable: boolean): Operation => ({
      kind: 'save',
      row: encodeTask({ ...entry.task, version }),
      outcome: null,
      schedule: { kind: 'keep' },
      durable,
    });
    const ref = { caller: entry.task.caller, id: entry.task.id };
    const lease: Operation = { kind: 'lease', ...ref, now: fixtureTime, until: fixtureTime + 1 };
    const reschedule: Operation = { kind: 'reschedule', ...ref, dueAt: 1, intervalMs: 1, version: 4 };
    expect(used(insertOf(entry))).toBe('durable');
    expect(used(save(2, false))).toBe('hint');
    expect(used(save(3, true))).toBe('durable');
    expect(used(lease, save(4, false))).toBe('hint');
    expect(used(reschedule)).toBe('hint');
    expect(used(reschedule, { kind: 'setting', name: 'a', value: 'b' })).toBe('durable');
    expect(used({ kind: 'remove', ...ref })).toBe('durable');
  });

  it('leaves nothing behind of an operation that broke half-way', () => {
    const { run } = connect();
    const entry = makeEntry({ digest: 'other' });
    const broken = { ...insertOf(entry), dueAt: Number.NaN } as Operation;
    expect(run([broken, { kind: 'setting', name: 'a', value: 'b' }])).toMatchObject([
      { ok: false },
      { ok: true },
    ]);
    // The task was written before its schedule broke: had it stayed, this would be a conflict.
    expect(run([insertOf(entry)])).toEqual([{ ok: true, answer: undefined }]);
  });
});

describe('a dead writing thread', () => {
  /** Opens a store and gives the thread that it started. */
  async function openWithThread(
    options: Partial<SqliteStoreOptions> = {},
  ): Promise<{ store: Store; thread: Worker }> {
    const started = Promise.withResolvers<Worker>();
    process.once('worker', started.resolve);
    const store = await open(options);
    return { store, thread: await started.promise };
  }

  it('rejects what waits and what comes, says so at check, and leaves the reads', async () => {
    const lines: string[] = [];
    const { store, thread } = await openWithThread({
      log: { error: (_fields, message) => void lines.push(message) },
    });
    const entry = makeEntry();
    await store.insert(entry);
    const waiting = Array.from({ length: 20 }, () => store.insert(makeEntry()));
    const settled = Promise.allSettled(waiting);
    await thread.terminate();
    for (const result of await settled) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'store_failed' });
    }
    await expect(store.insert(makeEntry())).rejects.toMatchObject({
      code: 'store_failed',
      message: expect.stringContaining('the writing thread'),
      fix: expect.stringContaining('Restart'),
    });
    await expect(store.check()).rejects.toMatchObject({ code: 'store_failed' });
    expect((await store.get(entry.task))?.task).toEqual(entry.task);
    expect(lines).toHaveLength(1);
  });

  it('leaves no call without an answer when it dies during a close', async () => {
    const { store, thread } = await openWithThread();
    const waiting = Promise.allSettled(Array.from({ length: 2_000 }, () => store.insert(makeEntry())));
    const closing = store.close();
    await thread.terminate();
    await closing;
    for (const result of await waiting) {
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'store_failed' });
    }
    expect(await waiting).toHaveLength(2_000);
  });

  it('can still be closed, after which the file opens again with all that was acknowledged', async () => {
    const path = join(tempDir(), 'tasks.db');
    const { store, thread } = await openWithThread({ path });
    const entry = makeEntry();
    await store.insert(entry);
    await thread.terminate();
    await store.close();
    const again = await open({ path });
    expect((await again.get(entry.task))?.task).toEqual(entry.task);
  });
});
