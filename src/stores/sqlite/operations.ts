// Carries out one operation on one connection, inside a transaction that its caller holds.

import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite';
import { unendedGrace } from '../store.ts';
import { asStoredRow, type Operation, type WriteAnswer } from './messages.ts';

export type Apply = (operation: Operation) => WriteAnswer;

/** A task with its schedule, as `StoredRow`; takes a WHERE clause. */
export const selectStored = `
  SELECT t.caller, t.id, t.version, t.stage, t.adapter, t.digest, t.tool, t.start_key, t.expires_at,
    t.state, t.data, i.input, t.outcome, s.due_at, s.interval_ms
  FROM tasks t JOIN inputs i ON i.number = t.number LEFT JOIN schedule s ON s.id = t.id AND s.caller = t.caller`;

/** Every statement that writes, by name. */
export const sql = {
  findStartKey: `${selectStored} WHERE t.caller = ? AND t.adapter = ? AND t.tool = ? AND t.start_key = ?`,
  insertText: 'INSERT INTO adapters (digest, text) VALUES (?, ?) ON CONFLICT DO NOTHING',
  insertTask: `
    INSERT INTO tasks (caller, id, version, stage, adapter, digest, tool, start_key, expires_at, state, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  insertInput: 'INSERT INTO inputs (number, input) VALUES (?, ?)',
  insertSchedule: `
    INSERT INTO schedule (id, caller, adapter, due_at, interval_ms, deadline, lease_until)
    VALUES (?, ?, ?, ?, ?, ?, ?)`,
  saveTask: `
    UPDATE tasks SET version = ?, stage = ?, state = ?, data = ?, outcome = coalesce(?, outcome)
    WHERE id = ? AND caller = ? AND version = ? RETURNING adapter, expires_at`,
  // Apart, so that an ordinary save leaves the index on expires_at alone.
  saveExpiry: 'UPDATE tasks SET expires_at = ? WHERE id = ? AND caller = ?',
  setSchedule: `
    INSERT INTO schedule (id, caller, adapter, due_at, interval_ms, deadline, lease_until)
    VALUES (?, ?, ?, ?, ?, ?, 0)
    ON CONFLICT DO UPDATE SET due_at = excluded.due_at, interval_ms = excluded.interval_ms,
      deadline = excluded.deadline, lease_until = 0`,
  dueBy: 'UPDATE schedule SET due_at = ? WHERE id = ? AND caller = ? AND due_at > ?',
  unschedule: 'DELETE FROM schedule WHERE id = ? AND caller = ?',
  removeTask: 'DELETE FROM tasks WHERE id = ? AND caller = ? RETURNING digest',
  reschedule: `
    UPDATE schedule SET due_at = ?3, interval_ms = ?4, lease_until = 0 WHERE id = ?1 AND caller = ?2
      AND EXISTS (SELECT 1 FROM tasks t WHERE t.id = ?1 AND t.caller = ?2 AND t.version = ?5)`,
  lease: 'UPDATE schedule SET lease_until = ? WHERE id = ? AND caller = ? AND lease_until <= ?',
  releaseLeases: 'UPDATE schedule SET lease_until = 0 WHERE lease_until > 0',
  overdue:
    'SELECT id, caller FROM schedule WHERE adapter = ? AND due_at < ? ORDER BY due_at, id, caller LIMIT ?',
  moveDue: 'UPDATE schedule SET due_at = ? WHERE id = ? AND caller = ?',
  // As much further ahead as jitter and a growing interval may put it, and a minute for what else is planned.
  pullForward: 'UPDATE schedule SET due_at = ?1 WHERE due_at > ?1 + 2 * interval_ms + 60000',
  expired: `
    SELECT id, caller FROM tasks WHERE expires_at <= ?1 AND (stage = 'ended' OR expires_at <= ?1 - ${unendedGrace})
    ORDER BY expires_at LIMIT ?2`,
  countDigest: 'SELECT 1 FROM tally WHERE digest = ? AND tasks > 0 LIMIT 1',
  removeTally: 'DELETE FROM tally WHERE digest = ?',
  removeText: 'DELETE FROM adapters WHERE digest = ?',
  insertSetting: 'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING',
  getSetting: 'SELECT value FROM settings WHERE name = ?',
  writeScratch: "INSERT INTO settings (name, value) VALUES ('scratch', printf('%*c', 32768, '.'))",
  removeScratch: "DELETE FROM settings WHERE name = 'scratch'",
};

/** Prepares every statement on `db`; each call of the result runs one operation. */
export function prepareOperations(db: DatabaseSync): Apply {
  const statements = Object.fromEntries(
    Object.entries(sql).map(([name, text]) => [name, db.prepare(text)]),
  ) as { [name in keyof typeof sql]: StatementSync };

  const run = (name: keyof typeof sql, ...values: SQLInputValue[]): number =>
    Number(statements[name].run(...values).changes);

  const forgetTexts = (digests: Iterable<string>): void => {
    for (const digest of digests) {
      if (statements.countDigest.get(digest) !== undefined) continue;
      run('removeText', digest);
      run('removeTally', digest);
    }
  };

  const removeTask = (id: string, caller: string): string | undefined => {
    run('unschedule', id, caller);
    return statements.removeTask.get(id, caller)?.digest as string | undefined;
  };

  return (operation) => {
    switch (operation.kind) {
      case 'insert': {
        const { row } = operation;
        if (row.start_key !== null) {
          const found = statements.findStartKey.get(row.caller, row.adapter, row.tool, row.start_key);
          if (found !== undefined) return asStoredRow({ ...found });
        }
        run('insertText', row.digest, operation.text);
        const { lastInsertRowid } = statements.insertTask.run(
          row.caller,
          row.id,
          row.version,
          row.stage,
          row.adapter,
          row.digest,
          row.tool,
          row.start_key,
          row.expires_at,
          row.state,
          row.data,
        );
        run('insertInput', lastInsertRowid, row.input);
        const { dueAt, intervalMs, deadline, leaseUntil } = operation;
        run('insertSchedule', row.id, row.caller, row.adapter, dueAt, intervalMs, deadline, leaseUntil);
        return undefined;
      }
      case 'save': {
        const { row, schedule, outcome } = operation;
        const saved = statements.saveTask.get(
          row.version,
          row.stage,
          row.state,
          row.data,
          outcome,
          row.id,
          row.caller,
          row.version - 1,
        );
        if (saved === undefined) return false;
        if (saved.expires_at !== row.expires_at) run('saveExpiry', row.expires_at, row.id, row.caller);
        if (schedule.kind === 'none') run('unschedule', row.id, row.caller);
        else if (schedule.kind === 'due') run('dueBy', schedule.by, row.id, row.caller, schedule.by);
        else if (schedule.kind === 'set') {
          const adapter = saved.adapter as string;
          const { dueAt, intervalMs, deadline } = schedule;
          run('setSchedule', row.id, row.caller, adapter, dueAt, intervalMs, deadline);
        }
        return true;
      }
      case 'remove': {
        const digest = removeTask(operation.id, operation.caller);
        if (digest !== undefined) forgetTexts([digest]);
        return undefined;
      }
      case 'reschedule': {
        const { id, caller, dueAt, intervalMs, version } = operation;
        return run('reschedule', id, caller, dueAt, intervalMs, version) > 0;
      }
      case 'lease':
        return run('lease', operation.until, operation.id, operation.caller, operation.now) > 0;
      case 'releaseLeases':
        return run('releaseLeases');
      case 'pullForward':
        return run('pullForward', operation.now);
      case 'spread': {
        const { adapter, now, windowMs, done, total, limit } = operation;
        const refs = statements.overdue.all(adapter, now, limit);
        refs.forEach(({ id, caller }, i) => {
          const share = Math.min(1, (done + i) / total);
          run('moveDue', now + Math.floor(share * windowMs), id as string, caller as string);
        });
        return refs.length;
      }
      case 'purge': {
        const refs = statements.expired.all(operation.time, operation.limit);
        const digests = new Set<string>();
        for (const { id, caller } of refs) {
          const digest = removeTask(id as string, caller as string);
          if (digest !== undefined) digests.add(digest);
        }
        forgetTexts(digests);
        return refs.length;
      }
      case 'setting':
        run('insertSetting', operation.name, operation.value);
        return statements.getSetting.get(operation.name)?.value as string;
      case 'check':
        // As large as a large task: a full disk shows here, not only at the next call.
        run('writeScratch');
        run('removeScratch');
        return undefined;
    }
  };
}
