// The victim of the crash test: writes tasks as fast as it can, and prints "id version" for each write once the
// store has acknowledged it. Every third save is only a hint, which must outlive the process all the same.

import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { makeEntry, nextVersion } from '../helpers/task-fixture.ts';

const [path] = process.argv.slice(2);
if (path === undefined) throw new Error('usage: sqlite-crash-writer.ts PATH');
const store = await openSqliteStore({ path });

/** Waits while the pipe is full: its reader may be slower than the store. */
const acknowledge = (id: string, version: number): Promise<void> =>
  new Promise((resolve, reject) =>
    process.stdout.write(`${id} ${version}\n`, (error) => (error ? reject(error) : resolve())),
  );

async function write(): Promise<void> {
  for (;;) {
    const entry = makeEntry({ message: 'version 1' });
    await store.insert(entry);
    await acknowledge(entry.task.id, 1);
    let { task } = entry;
    for (let version = 2; version < 6; version++) {
      task = nextVersion(task, { message: `version ${version}` });
      const schedule = { dueAt: task.createdAt + version, intervalMs: 1 };
      if (!(await store.save({ task, schedule, durable: version % 3 !== 0 }))) throw new Error('a save lost');
      await acknowledge(task.id, version);
    }
  }
}

await Promise.all(Array.from({ length: 16 }, write));
