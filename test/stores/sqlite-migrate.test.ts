// Schema versions: forward in one transaction, never backward.

import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, it, onTestFinished } from 'vitest';
import { migrate } from '../../src/stores/sqlite/migrate.ts';
import { migrations } from '../../src/stores/sqlite/schema.ts';
import { openSqliteStore } from '../../src/stores/sqlite.ts';
import { encodeTask } from '../../src/stores/task-row.ts';
import { makeEntry } from '../helpers/task-fixture.ts';
import { tempDir } from '../helpers/temp-dir.ts';

const entry = makeEntry();

/** A file as the current release leaves it, with one task. */
async function current(): Promise<string> {
  const path = join(tempDir(), 'tasks.db');
  const store = await openSqliteStore({ path });
  await store.insert(entry);
  await store.close();
  return path;
}

function read(path: string, query: string): unknown {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return Object.values(db.prepare(query).get() ?? {})[0];
  } finally {
    db.close();
  }
}

it('brings an older store to the current version and keeps its tasks', async () => {
  const path = await current();
  const later = [
    ...migrations,
    "ALTER TABLE tasks ADD COLUMN note TEXT NOT NULL DEFAULT 'old'",
    "UPDATE tasks SET note = note || ', then ' || stage; CREATE INDEX tasks_note ON tasks (note)",
  ];
  const store = await openSqliteStore({ path, migrations: later });
  onTestFinished(() => store.close());
  expect((await store.get(entry.task))?.task).toEqual(entry.task);
  await store.close();
  expect(read(path, 'PRAGMA user_version')).toBe(migrations.length + 2);
  expect(read(path, 'SELECT note FROM tasks')).toBe('old, then following');
});

it('changes nothing when one of several steps fails', async () => {
  const path = await current();
  const broken = [...migrations, 'ALTER TABLE tasks ADD COLUMN note TEXT', 'UPDATE nothing SET a = 1'];
  await expect(openSqliteStore({ path, migrations: broken })).rejects.toMatchObject({ code: 'store_failed' });
  expect(read(path, 'PRAGMA user_version')).toBe(migrations.length);
  expect(read(path, "SELECT count(*) FROM pragma_table_info('tasks') WHERE name = 'note'")).toBe(0);
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  expect(await store.get(entry.task)).toBeDefined();
});

it('refuses the store of a newer release and leaves it as it is', async () => {
  const path = await current();
  const newer = [...migrations, 'CREATE TABLE later (a)'];
  await (await openSqliteStore({ path, migrations: newer })).close();
  await expect(openSqliteStore({ path })).rejects.toMatchObject({
    code: 'store_newer',
    message: `the store ${path} has schema version ${newer.length}, this taskferry knows up to ${migrations.length}`,
    fix: expect.stringContaining('newer taskferry'),
  });
  expect(read(path, 'PRAGMA user_version')).toBe(newer.length);
});

it('knows the deadlines of tasks that version 1 stored without them in the schedule', async () => {
  const path = join(tempDir(), 'tasks.db');
  const db = new DatabaseSync(path);
  migrate(db, migrations.slice(0, 1));
  const { caller, id, version, stage, adapter, digest, tool, expires_at, state, data, input } = encodeTask(
    entry.task,
  );
  db.prepare(
    `INSERT INTO tasks (caller, id, version, stage, adapter, digest, tool, expires_at, state, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(caller, id, version, stage, adapter, digest, tool, expires_at, state, data);
  db.prepare('INSERT INTO inputs VALUES (1, ?)').run(input);
  db.prepare('INSERT INTO schedule VALUES (?, ?, ?, 5, 5, 0)').run(id, caller, adapter);
  db.close();
  const store = await openSqliteStore({ path });
  onTestFinished(() => store.close());
  const { deadline } = entry.task;
  expect(await store.pastDeadline(deadline - 1, 10)).toEqual([]);
  expect(await store.pastDeadline(deadline, 10)).toEqual([{ caller, id }]);
});
