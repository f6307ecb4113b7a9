// The SQLite store: reads on the main thread, writes in a thread of their own with group commit.

import { StoreError, sentenceOf } from '../errors.ts';
import { guarded } from './sqlite/failure.ts';
import { createPrivateFile, realFile, watchFile } from './sqlite/file.ts';
import { lockStore, type StoreLock } from './sqlite/lock.ts';
import type { Operation, SaveSchedule, StoredRow, WriteAnswer } from './sqlite/messages.ts';
import { createReader, type Reader, toStored } from './sqlite/reader.ts';
import { openWriter, type Writer } from './sqlite/writer.ts';
import type { Save, Store } from './store.ts';
import { encodeSave, encodeTask, wholeSchedule } from './task-row.ts';

export interface SqliteStoreOptions {
  /** The database file, created (mode 0600) when missing; its directory must exist. */
  path: string;
  log?: { error(fields: object, message: string): void };
  /** Bounds the file to this many pages of 4 KiB; default unbounded. */
  maxPages?: number;
  /** Replaces the schema: entry n brings version n to n + 1. */
  migrations?: readonly string[];
}

/** Tasks moved by one round of `spread`; others' writes go between the rounds. */
const spreadSlice = 2_000;

/**
 * Opens the store and takes its lock. The process stays alive until `close`.
 * @throws StoreError `store_locked`, `store_newer`, `store_corrupt`, `store_unreadable`, `store_full`, `store_failed`
 */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<Store> {
  const { path, log, maxPages, migrations } = options;
  const file = guarded(path, () => realFile(path));
  const lock = guarded(path, () => lockStore(file));
  try {
    guarded(path, () => createPrivateFile(file));
    const refuseMoved = guarded(path, () => watchFile(file, `the store file ${file}`));
    const writer = await openWriter({ file, maxPages, migrations }, (error) =>
      log?.error({ code: error.code }, sentenceOf(error)),
    );
    try {
      const reader = guarded(path, () => createReader(file));
      return createStore(file, reader, writer, {
        refuseMoved: () => {
          refuseMoved();
          lock.refuseMoved();
        },
        release: lock.release,
      });
    } catch (error) {
      await writer.close();
      throw error;
    }
  } catch (error) {
    lock.release();
    throw error;
  }
}

function createStore(file: string, reader: Reader, writer: Writer, lock: StoreLock): Store {
  let closed: Promise<void> | undefined;

  const refuseClosed = (): void => {
    if (closed !== undefined) throw new StoreError('store_closed', `the store ${file} is closed`);
  };
  const read = async <T>(query: () => T): Promise<T> => {
    refuseClosed();
    return guarded(file, query);
  };
  const write = async (operation: Operation): Promise<WriteAnswer> => {
    refuseClosed();
    return writer.write(operation);
  };

  return {
    async insert({ task, schedule, leaseUntil, adapterText }) {
      // A task in a file without a name would be lost with the process: nothing is started then.
      guarded(file, lock.refuseMoved);
      const answer = await write({
        kind: 'insert',
        row: encodeTask(task),
        ...wholeSchedule(schedule),
        deadline: Math.ceil(task.deadline),
        leaseUntil: Math.round(leaseUntil),
        text: adapterText,
      });
      return answer === undefined
        ? { kind: 'inserted' }
        : { kind: 'exists', existing: toStored(answer as StoredRow) };
    },
    get: (ref) => read(() => reader.get(ref)),
    async save(change) {
      const { task, outcome, durable } = change;
      const schedule = saveSchedule(change);
      return (
        (await write({
          kind: 'save',
          row: encodeSave(task),
          outcome: outcome ?? null,
          schedule,
          durable,
        })) === true
      );
    },
    async remove({ caller, id }) {
      await write({ kind: 'remove', caller, id });
    },

    reschedule: async ({ caller, id }, schedule, version) =>
      (await write({ kind: 'reschedule', caller, id, ...wholeSchedule(schedule), version })) === true,
    lease: async ({ caller, id }, now, until) =>
      (await write({ kind: 'lease', caller, id, now: Math.round(now), until: Math.round(until) })) === true,
    dueBefore: (adapter, time, limit) => read(() => reader.dueBefore(adapter, time, limit)),
    nextDue: (adapter) => read(() => reader.nextDue(adapter)),
    pastDeadline: (time, limit) => read(() => reader.pastDeadline(time, limit)),
    pullForward: async (now) => Number(await write({ kind: 'pullForward', now: Math.round(now) })),
    scheduledAdapters: () => read(() => reader.scheduledAdapters()),
    async releaseLeases() {
      await write({ kind: 'releaseLeases' });
    },
    async spread(adapter, now, windowMs) {
      const total = await read(() => reader.overdue(adapter, now));
      let done = 0;
      let moved = spreadSlice;
      while (moved === spreadSlice && done < total) {
        const slice = { now: Math.round(now), windowMs, done, total, limit: spreadSlice };
        moved = Number(await write({ kind: 'spread', adapter, ...slice }));
        done += moved;
      }
      return done;
    },

    purge: async (time, limit) => Number(await write({ kind: 'purge', time, limit })),
    adapterText: (digest) => read(() => reader.adapterText(digest)),
    adapterDigests: () => read(() => reader.adapterDigests()),
    async setting(name, make) {
      const known = await read(() => reader.setting(name));
      return known ?? String(await write({ kind: 'setting', name, value: make() }));
    },
    counts: () => read(() => reader.counts()),
    async check() {
      refuseClosed();
      guarded(file, lock.refuseMoved);
      await read(() => reader.probe());
      await write({ kind: 'check' });
    },
    close() {
      closed ??= (async () => {
        // The reader first: the last connection to close empties the log, and a reader couldn't.
        reader.close();
        await writer.close();
        lock.release();
      })();
      return closed;
    },
  };
}

function saveSchedule({ task, schedule, dueBy }: Save): SaveSchedule {
  if (schedule === null || (task.stage === 'ended' && schedule === undefined)) return { kind: 'none' };
  if (schedule !== undefined)
    return { kind: 'set', ...wholeSchedule(schedule), deadline: Math.ceil(task.deadline) };
  return dueBy === undefined ? { kind: 'keep' } : { kind: 'due', by: Math.round(dueBy) };
}
