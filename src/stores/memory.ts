// The in-memory store, for tests: the port's rules in the plainest form, and nothing survives the process.

import { StoreError } from '../errors.ts';
import { refKey, type Schedule, type TaskRef } from '../tasks/task.ts';
import { createDueList, type DueEntry, type DueList } from './memory/due-list.ts';
import { type Store, type StoredTask, unendedGrace } from './store.ts';
import { decodeTask, encodeSave, encodeTask, type TaskRow, wholeSchedule } from './task-row.ts';

interface Entry {
  row: TaskRow;
  outcome: string | undefined;
  due: DueEntry | undefined;
}

export function createMemoryStore(): Store {
  const entries = new Map<string, Entry>();
  const dueLists = new Map<string, DueList>();
  const texts = new Map<string, string>();
  const settings = new Map<string, string>();
  let closed = false;

  const refuseClosed = (): void => {
    if (closed) throw new StoreError('store_closed', 'the in-memory store is closed');
  };
  const find = (ref: TaskRef): Entry | undefined => entries.get(refKey(ref));
  const listOf = (adapter: string): DueList => {
    const list = dueLists.get(adapter) ?? createDueList();
    dueLists.set(adapter, list);
    return list;
  };

  const unschedule = (entry: Entry): void => {
    if (entry.due !== undefined) listOf(entry.row.adapter).remove(entry.due);
    entry.due = undefined;
  };
  const place = (entry: Entry, schedule: Schedule & { deadline: number }, leaseUntil: number): void => {
    unschedule(entry);
    const { caller, id, adapter } = entry.row;
    entry.due = { caller, id, ...wholeSchedule(schedule), deadline: schedule.deadline, leaseUntil };
    listOf(adapter).add(entry.due);
  };
  const moveTo = (entry: Entry, due: DueEntry, dueAt: number): void =>
    place(entry, { ...due, dueAt }, due.leaseUntil);

  const removeEntry = (entry: Entry): void => {
    unschedule(entry);
    entries.delete(refKey(entry.row));
    const { digest } = entry.row;
    for (const other of entries.values()) if (other.row.digest === digest) return;
    texts.delete(digest);
  };

  return {
    async insert({ task, schedule, leaseUntil, adapterText }) {
      refuseClosed();
      const row = encodeTask(task);
      if (row.start_key !== null) {
        for (const entry of entries.values()) {
          if (sameStart(entry.row, row)) return { kind: 'exists', existing: toStored(entry) };
        }
      }
      if (entries.has(refKey(row))) throw new StoreError('store_failed', 'a task with this id exists');
      const entry: Entry = { row, outcome: undefined, due: undefined };
      entries.set(refKey(row), entry);
      place(entry, { ...schedule, deadline: Math.ceil(task.deadline) }, Math.round(leaseUntil));
      if (!texts.has(row.digest)) texts.set(row.digest, adapterText);
      return { kind: 'inserted' };
    },
    async get(ref) {
      refuseClosed();
      const entry = find(ref);
      return entry === undefined ? undefined : toStored(entry);
    },
    async save({ task, schedule, dueBy, outcome }) {
      refuseClosed();
      const entry = find(task);
      if (entry === undefined || entry.row.version !== task.version - 1) return false;
      entry.row = { ...entry.row, ...encodeSave(task) };
      entry.outcome = outcome ?? entry.outcome;
      if (schedule === null || (task.stage === 'ended' && schedule === undefined)) unschedule(entry);
      else if (schedule !== undefined) place(entry, { ...schedule, deadline: Math.ceil(task.deadline) }, 0);
      else if (dueBy !== undefined && entry.due !== undefined && entry.due.dueAt > dueBy) {
        moveTo(entry, entry.due, dueBy);
      }
      return true;
    },
    async remove(ref) {
      refuseClosed();
      const entry = find(ref);
      if (entry !== undefined) removeEntry(entry);
    },

    async reschedule(ref, schedule, version) {
      refuseClosed();
      const entry = find(ref);
      if (entry?.due === undefined || entry.row.version !== version) return false;
      place(entry, { ...schedule, deadline: entry.due.deadline }, 0);
      return true;
    },
    async lease(ref, now, until) {
      refuseClosed();
      const due = find(ref)?.due;
      if (due === undefined || due.leaseUntil > Math.round(now)) return false;
      due.leaseUntil = Math.round(until);
      return true;
    },
    async dueBefore(adapter, time, limit) {
      refuseClosed();
      return dueLists.get(adapter)?.before(time, limit) ?? [];
    },
    async nextDue(adapter) {
      refuseClosed();
      return dueLists.get(adapter)?.next();
    },
    async pastDeadline(time, limit) {
      refuseClosed();
      return [...entries.values()]
        .flatMap(({ due }) =>
          due !== undefined && due.deadline <= time && due.leaseUntil <= time ? [due] : [],
        )
        .sort((a, b) => a.deadline - b.deadline || (a.id < b.id ? -1 : 1))
        .slice(0, limit)
        .map(({ caller, id }) => ({ caller, id }));
    },
    async pullForward(now) {
      refuseClosed();
      const time = Math.round(now);
      const ahead = [...entries.values()].filter(
        ({ due }) => due !== undefined && due.dueAt > time + 2 * due.intervalMs + 60_000,
      );
      for (const entry of ahead) if (entry.due !== undefined) moveTo(entry, entry.due, time);
      return ahead.length;
    },
    async scheduledAdapters() {
      refuseClosed();
      return [...dueLists].flatMap(([adapter, list]) => (list.size() > 0 ? [adapter] : [])).sort();
    },
    async releaseLeases() {
      refuseClosed();
      for (const { due } of entries.values()) if (due !== undefined) due.leaseUntil = 0;
    },
    async spread(adapter, now, windowMs) {
      refuseClosed();
      const overdue = dueLists.get(adapter)?.overdue(now) ?? [];
      for (const [i, due] of overdue.entries()) {
        const entry = find(due);
        if (entry !== undefined)
          moveTo(entry, due, Math.round(now) + Math.floor((i / overdue.length) * windowMs));
      }
      return overdue.length;
    },

    async purge(time, limit) {
      refuseClosed();
      const expired = [...entries.values()]
        .filter(({ row }) => row.expires_at <= (row.stage === 'ended' ? time : time - unendedGrace))
        .sort((a, b) => a.row.expires_at - b.row.expires_at)
        .slice(0, limit);
      for (const entry of expired) removeEntry(entry);
      return expired.length;
    },
    async adapterText(digest) {
      refuseClosed();
      return texts.get(digest);
    },
    async adapterDigests() {
      refuseClosed();
      return [...texts.keys()].sort();
    },
    async setting(name, make) {
      refuseClosed();
      const value = settings.get(name) ?? make();
      settings.set(name, value);
      return value;
    },
    async counts() {
      refuseClosed();
      const counts = new Map<string, { adapter: string; stage: string; count: number }>();
      for (const { row } of entries.values()) {
        const key = JSON.stringify([row.adapter, row.stage]);
        const known = counts.get(key) ?? { adapter: row.adapter, stage: row.stage, count: 0 };
        counts.set(key, { ...known, count: known.count + 1 });
      }
      return [...counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
    },
    async check() {
      refuseClosed();
    },
    async close() {
      closed = true;
    },
  };
}

function sameStart(a: TaskRow, b: TaskRow): boolean {
  return a.start_key === b.start_key && a.caller === b.caller && a.adapter === b.adapter && a.tool === b.tool;
}

function toStored({ row, outcome, due }: Entry): StoredTask {
  return {
    task: decodeTask(row),
    schedule: due === undefined ? undefined : { dueAt: due.dueAt, intervalMs: due.intervalMs },
    outcome,
  };
}
