// Opening the SQLite store: what it creates, and what it refuses with which words.

import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import type { Store } from '../../src/stores/store.ts';
import { makeEntry } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

async function open(path: string): Promise<Store> {
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  return store;
}

/** The refusal of an opening that must not succeed. */
async function refusal(path: string): Promise<unknown> {
  try {
    const store = await openSqliteStore({ path });
    await store.close();
  } catch (error) {
    return error;
  }
  throw new Error('the store opened');
}

/** A store that was closed properly, with `tasks` tasks in it. */
async function closedStore(path: string, tasks: number): Promise<void> {
  const store = await openSqliteStore({ path });
  await Promise.all(Array.from({ length: tasks }, () => store.insert(makeEntry())));
  await store.close();
}

const mode = (path: string): string => (statSync(path).mode & 0o777).toString(8);

describe('the files', () => {
  it('are readable for their owner only, whatever SQLite adds to them', async () => {
    const path = join(tempDir(), 'tasks.db');
    const store = await open(path);
    await store.insert(makeEntry());
    for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}.lock`]) expect(mode(file)).toBe('600');
  });

  it('are one database file after a close, with nothing left in the log', async () => {
    const path = join(tempDir(), 'tasks.db');
    await closedStore(path, 3);
    expect(() => statSync(`${path}-wal`)).toThrow('ENOENT');
    const db = new DatabaseSync(path, { readOnly: true });
    onTestFinished(() => db.close());
    expect(db.prepare('SELECT count(*) AS count FROM tasks').get()?.count).toBe(3);
  });
});

describe('the lock', () => {
  it('refuses a second opening in the same process, and is free after a close', async () => {
    const path = join(tempDir(), 'tasks.db');
    const first = await open(path);
    expect(await refusal(path)).toMatchObject({
      name: 'StoreError',
      code: 'store_locked',
      message: expect.stringContaining('another taskferry process'),
      fix: expect.stringContaining('--store'),
    });
    await first.insert(makeEntry());
    await first.close();
    const second = await open(path);
    expect(await second.counts()).toMatchObject([{ count: 1 }]);
  });

  it('refuses a second process, by whatever name it knows the file', async () => {
    const directory = tempDir();
    const path = join(directory, 'tasks.db');
    await open(path);
    symlinkSync(path, join(directory, 'alias.db'));
    const script = `
      import { openSqliteStore } from ${JSON.stringify(new URL('../../src/stores/sqlite.ts', import.meta.url).href)};
      try { await openSqliteStore({ path: process.argv[1] }); } catch (error) { console.log(error.code); process.exit(); }`;
    for (const name of ['tasks.db', 'alias.db']) {
      const child = spawnSync(
        process.execPath,
        ['--input-type=module', '-e', script, join(directory, name)],
        { encoding: 'utf8', timeout: 10_000 },
      );
      expect(child.stdout.trim()).toBe('store_locked');
    }
  });
});

describe('a file that can’t be used', () => {
  it('is refused when its directory is missing', async () => {
    const path = join(tempDir(), 'missing', 'tasks.db');
    expect(await refusal(path)).toMatchObject({
      code: 'store_unreadable',
      message: `the directory of the store ${path} does not exist`,
      fix: expect.any(String),
    });
  });

  it('is refused when it is a directory, or lies below a file', async () => {
    const directory = tempDir();
    mkdirSync(join(directory, 'folder'));
    writeFileSync(join(directory, 'file'), '');
    for (const path of [join(directory, 'folder'), join(directory, 'file', 'tasks.db')]) {
      expect(await refusal(path)).toMatchObject({ code: 'store_unreadable', fix: expect.any(String) });
    }
  });

  it('is refused without the permission to write there', async () => {
    const directory = tempDir();
    await closedStore(join(directory, 'tasks.db'), 1);
    const script = `
      import { openSqliteStore } from ${JSON.stringify(new URL('../../src/stores/sqlite.ts', import.meta.url).href)};
      const [path] = process.argv.slice(1);
      // Root may do everything, so the test steps down.
      if (process.getuid() === 0) process.seteuid(65534);
      try { await openSqliteStore({ path }); } catch (error) { console.log(error.code + ': ' + error.message); }`;
    const path = join('/', `no-permission-${process.pid}.db`);
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script, path], {
      encoding: 'utf8',
      timeout: 10_000,
    });
    expect(child.stdout.trim()).toBe(`store_unreadable: taskferry may not read and write the store ${path}`);
  });

  it('is refused when it is no database, and stays as it is', async () => {
    const path = join(tempDir(), 'notes.txt');
    const text = 'Not a database at all.\n'.repeat(100);
    writeFileSync(path, text);
    expect(await refusal(path)).toMatchObject({
      code: 'store_corrupt',
      message: expect.stringContaining(path),
      fix: expect.stringContaining('Keep the file'),
    });
    expect(readFileSync(path, 'utf8')).toBe(text);
  });

  it('is refused when it is another program’s database, and stays as it is', async () => {
    const path = join(tempDir(), 'theirs.db');
    const theirs = new DatabaseSync(path);
    theirs.exec('CREATE TABLE invoices (id INTEGER)');
    theirs.close();
    const before = readFileSync(path);
    expect(await refusal(path)).toMatchObject({
      code: 'store_unreadable',
      message: `${path} is a database of another program`,
    });
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('frees the lock again when the opening fails', async () => {
    const path = join(tempDir(), 'tasks.db');
    writeFileSync(path, 'no database '.repeat(1_000));
    await refusal(path);
    writeFileSync(path, '');
    await open(path);
  });
});

describe('a damaged store', () => {
  /** Copies the files of an open store, as a machine that lost power would leave them, and damages a page. */
  async function damagedCrashImage(): Promise<string> {
    const directory = tempDir();
    const path = join(directory, 'tasks.db');
    await closedStore(path, 300);
    const store = await open(path);
    await store.insert(makeEntry());
    const copy = join(directory, 'copy.db');
    copyFileSync(`${path}-wal`, `${copy}-wal`);
    writeFileSync(copy, damaged(readFileSync(path)));
    return copy;
  }

  /** Overwrites the middle pages, which hold tasks; the schema in the first ones stays whole. */
  function damaged(file: Buffer): Buffer {
    const pages = file.length / 4_096;
    return Buffer.from(file).fill(0xee, Math.floor(pages / 2) * 4_096, Math.floor(pages * 0.75) * 4_096);
  }

  it('is found at the start after a crash', async () => {
    const path = await damagedCrashImage();
    expect(await refusal(path)).toMatchObject({
      code: 'store_corrupt',
      message: expect.stringContaining('is damaged'),
      fix: expect.stringContaining('back-up'),
    });
  });

  it('is found at the start after a clean close too', async () => {
    const path = join(tempDir(), 'tasks.db');
    await closedStore(path, 300);
    const whole = readFileSync(path);
    for (const bytes of [damaged(whole), whole.subarray(0, whole.length / 2)]) {
      writeFileSync(path, bytes);
      expect(await refusal(path)).toMatchObject({ code: 'store_corrupt' });
      expect(readFileSync(path)).toEqual(bytes);
    }
  });

  it('is not searched for in a large file after a clean close, so that a start stays fast; its reads say what they meet', async () => {
    const path = join(tempDir(), 'tasks.db');
    const entries = Array.from({ length: 300 }, () => makeEntry());
    const first = await openSqliteStore({ path });
    await Promise.all(entries.map((entry) => first.insert(entry)));
    await first.close();
    const filler = new DatabaseSync(path);
    filler.exec('CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(67108864))');
    filler.close();
    const file = readFileSync(path);
    const tasks = statSync(path).size - 67_108_864;
    writeFileSync(
      path,
      file.fill(0xee, Math.floor(tasks / 8_192) * 4_096, Math.floor(tasks / 8_192) * 4_096 + 65_536),
    );
    const store = await open(path);
    const reads = await Promise.allSettled(entries.map(({ task }) => store.get(task)));
    const failed = reads.filter((read) => read.status === 'rejected');
    expect(failed.length).toBeGreaterThan(0);
    for (const read of failed) expect(read.reason).toMatchObject({ code: 'store_corrupt' });
  });

  it('opens after a crash that damaged nothing, with all that was acknowledged', async () => {
    const directory = tempDir();
    const path = join(directory, 'tasks.db');
    const store = await open(path);
    const entry = makeEntry();
    await store.insert(entry);
    const copy = join(directory, 'copy.db');
    for (const suffix of ['', '-wal']) copyFileSync(path + suffix, copy + suffix);
    const second = await open(copy);
    expect((await second.get(entry.task))?.task).toEqual(entry.task);
  });
});
