// The reads of the SQLite store, on the main thread: a few microseconds each, by primary key or index.

import type { TaskRef } from '../../tasks/task.ts';
import type { StoredTask } from '../store.ts';
import { decodeTask } from '../task-row.ts';
import { openReader } from './database.ts';
import { asStoredRow, type StoredRow } from './messages.ts';
import { selectStored } from './operations.ts';

export interface Reader {
  get(ref: TaskRef): StoredTask | undefined;
  dueBefore(adapter: string, time: number, limit: number): TaskRef[];
  nextDue(adapter: string): number | undefined;
  pastDeadline(time: number, limit: number): TaskRef[];
  scheduledAdapters(): string[];
  overdue(adapter: string, now: number): number;
  adapterText(digest: string): string | undefined;
  adapterDigests(): string[];
  setting(name: string): string | undefined;
  counts(): { adapter: string; stage: string; count: number }[];
  /** Reads the oldest and the newest task from the file. */
  probe(): void;
  close(): void;
}

/** Every query that runs often; a test shows that each is answered by an index. */
export const queries = {
  get: `${selectStored} WHERE t.id = ? AND t.caller = ?`,
  dueBefore: `
    SELECT id, caller FROM schedule WHERE adapter = ?1 AND due_at <= ?2 AND lease_until <= ?2
    ORDER BY due_at, id, caller LIMIT ?3`,
  pastDeadline: `
    SELECT id, caller FROM schedule WHERE deadline <= ?1 AND lease_until <= ?1
    ORDER BY deadline, id, caller LIMIT ?2`,
  nextUnleased: `
    SELECT due_at AS due FROM schedule WHERE adapter = ? AND lease_until = 0 ORDER BY due_at LIMIT 1`,
  nextLeaseEnd: `
    SELECT min(max(due_at, lease_until)) AS due FROM schedule WHERE adapter = ? AND lease_until > 0`,
  overdue: 'SELECT count(*) AS count FROM schedule WHERE adapter = ? AND due_at < ?',
  // Jumps from one adapter to the next, where DISTINCT would walk the whole index.
  scheduledAdapters: `
    WITH RECURSIVE names(name) AS (
      SELECT min(adapter) FROM schedule
      UNION ALL
      SELECT (SELECT min(adapter) FROM schedule WHERE adapter > name) FROM names WHERE name IS NOT NULL
    )
    SELECT name FROM names WHERE name IS NOT NULL`,
  adapterText: 'SELECT text FROM adapters WHERE digest = ?',
  adapterDigests: 'SELECT digest FROM adapters ORDER BY digest',
  setting: 'SELECT value FROM settings WHERE name = ?',
  counts: `
    SELECT adapter, stage, sum(tasks) AS count FROM tally WHERE tasks > 0
    GROUP BY adapter, stage ORDER BY adapter, stage`,
};

/** Reads all of a column, as a damaged page may lie behind its start. */
const probeText = `
  SELECT length(data) FROM tasks WHERE number IN ((SELECT min(number) FROM tasks), (SELECT max(number) FROM tasks))`;

export function createReader(file: string): Reader {
  const db = openReader(file);
  const get = db.prepare(queries.get);
  const dueBefore = db.prepare(queries.dueBefore);
  const pastDeadline = db.prepare(queries.pastDeadline);
  const nextUnleased = db.prepare(queries.nextUnleased);
  const nextLeaseEnd = db.prepare(queries.nextLeaseEnd);
  const overdue = db.prepare(queries.overdue);
  const scheduledAdapters = db.prepare(queries.scheduledAdapters);
  const adapterText = db.prepare(queries.adapterText);
  const adapterDigests = db.prepare(queries.adapterDigests);
  const setting = db.prepare(queries.setting);
  const counts = db.prepare(queries.counts);
  const probe = db.prepare(probeText);

  return {
    get({ caller, id }) {
      const row = get.get(id, caller);
      return row === undefined ? undefined : toStored(asStoredRow(row));
    },
    dueBefore: (adapter, time, limit) => dueBefore.all(adapter, time, limit).map(toRef),
    pastDeadline: (time, limit) => pastDeadline.all(time, limit).map(toRef),
    nextDue(adapter) {
      const times = [nextUnleased.get(adapter)?.due, nextLeaseEnd.get(adapter)?.due];
      const known = times.filter((time) => typeof time === 'number');
      return known.length === 0 ? undefined : Math.min(...known);
    },
    scheduledAdapters: () => scheduledAdapters.all().map((row) => String(row.name)),
    overdue: (adapter, now) => Number(overdue.get(adapter, now)?.count),
    adapterText: (digest) => adapterText.get(digest)?.text as string | undefined,
    adapterDigests: () => adapterDigests.all().map((row) => String(row.digest)),
    setting: (name) => setting.get(name)?.value as string | undefined,
    counts: () =>
      counts.all().map((row) => ({
        adapter: String(row.adapter),
        stage: String(row.stage),
        count: Number(row.count),
      })),
    probe: () => void probe.all(),
    close: () => db.close(),
  };
}

function toRef(row: { [column: string]: unknown }): TaskRef {
  return { caller: String(row.caller), id: String(row.id) };
}

export function toStored(row: StoredRow): StoredTask {
  return {
    task: decodeTask(row),
    schedule:
      row.due_at === null || row.interval_ms === null
        ? undefined
        : { dueAt: row.due_at, intervalMs: row.interval_ms },
    outcome: row.outcome ?? undefined,
  };
}
