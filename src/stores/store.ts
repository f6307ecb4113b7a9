// The store port: durable tasks, their schedule and the adapter texts they follow.
// Every implementation passes test/contracts/store-contract.ts.

import { StoreError } from '../errors.ts';
import type { Schedule, Task, TaskRef } from '../tasks/task.ts';

/** One record can't be written or read (`store_failed`); the store itself works, and so do all other tasks. */
export class RecordError extends StoreError {}

export interface StoredTask {
  /** Its `args` and `confirm` are parsed when first read, so reading them may throw a RecordError too. */
  task: Task;
  /** Undefined once ended, unless something is to be removed upstream. */
  schedule: Schedule | undefined;
  /** The rendered result or error of an ended task, as JSON text; undefined before. */
  outcome: string | undefined;
}

/** How long after its expiry a task goes that has not ended. Milliseconds. */
export const unendedGrace = 86_400_000;

export interface NewTask {
  task: Task;
  schedule: Schedule;
  /** The inserter works on the task itself until then (wall time); nobody else may lease it. */
  leaseUntil: number;
  /** Kept once per digest while a task follows it. */
  adapterText: string;
}

export type InsertOutcome =
  | { kind: 'inserted' }
  /** A task with the same caller, adapter, tool and startKey exists. */
  | { kind: 'exists'; existing: StoredTask };

export interface Save {
  /** The next state; its `version` must be one more than the stored one. `args` and `confirm` stay as inserted. */
  task: Task;
  /**
   * New schedule; null removes the task from the schedule, as does undefined with stage `ended`; undefined leaves it
   * else. Ends the lease unless it leaves it.
   */
  schedule?: Schedule | null;
  /** With `schedule` undefined: brings the next look forward to this time if it is later; keeps the lease. */
  dueBy?: number;
  /** Set with stage `ended`. */
  outcome?: string;
  /**
   * True: a promise, on disk when the call resolves. False: a hint (progress), which a power failure may undo;
   * a later durable write makes it durable too.
   */
  durable: boolean;
}

/**
 * Durability: whatever resolves with a promise has survived a crash of the process; `durable` and `insert`
 * survive a power failure too. A read sees every write that resolved before it.
 * All methods reject with StoreError (`store_full`, `store_closed`, `store_failed` …) and then changed nothing;
 * with RecordError when only the one record is at fault.
 */
export interface Store {
  /** Durable. */
  insert(entry: NewTask): Promise<InsertOutcome>;
  get(ref: TaskRef): Promise<StoredTask | undefined>;
  /** @returns false when the stored version is not `task.version - 1`, or the task is gone. */
  save(change: Save): Promise<boolean>;
  /** Removes the task and its schedule (a create that was refused). Durable. */
  remove(ref: TaskRef): Promise<void>;

  /**
   * Moves the next look and ends the lease, without touching the record. A hint.
   * @returns false, and changes nothing, when the stored version is not `version` or the task is unscheduled:
   *   somebody changed the record meanwhile (a cancel), and the caller must compute its schedule anew.
   */
  reschedule(ref: TaskRef, schedule: Schedule, version: number): Promise<boolean>;
  /** Claims a scheduled task until `until`. @returns false when it is leased past `now` or not scheduled. */
  lease(ref: TaskRef, now: number, until: number): Promise<boolean>;
  /** Up to `limit` unleased tasks of `adapter` due at or before `time`, most overdue first. */
  dueBefore(adapter: string, time: number, limit: number): Promise<TaskRef[]>;
  /** When the next unleased task of `adapter` is due (a lease that ends counts as due then). */
  nextDue(adapter: string): Promise<number | undefined>;
  /** Up to `limit` unleased tasks, of any adapter, whose deadline is at or before `time`, most overdue first. */
  pastDeadline(time: number, limit: number): Promise<TaskRef[]>;
  /**
   * After the wall clock was set back: looks that lie further ahead of `now` than a poll interval could have put
   * them are due at once. @returns how many.
   */
  pullForward(now: number): Promise<number>;
  /** Adapters that have scheduled tasks. */
  scheduledAdapters(): Promise<string[]>;
  /** After a restart of the only process: ends all leases, as their holder is gone. */
  releaseLeases(): Promise<void>;
  /** Spreads tasks of `adapter` that are due before `now` evenly over [now, now + windowMs]. @returns how many. */
  spread(adapter: string, now: number, windowMs: number): Promise<number>;

  /**
   * Removes up to `limit` ended tasks with `expiresAt` at or before `time`, and texts no task follows. One that has
   * not ended, as its record can't be read, goes a day later. @returns how many.
   */
  purge(time: number, limit: number): Promise<number>;
  adapterText(digest: string): Promise<string | undefined>;
  /** Digests with a stored text. */
  adapterDigests(): Promise<string[]>;
  /** Reads a named value of the installation, storing `make()` first when there is none. All instances get the same. */
  setting(name: string, make: () => string): Promise<string>;
  /** Tasks per adapter and stage, for metrics. May be up to a few seconds old. */
  counts(): Promise<{ adapter: string; stage: string; count: number }[]>;
  /** Resolves when writes work and reach the file of that name; rejects with StoreError otherwise (readiness). */
  check(): Promise<void>;
  /** Finishes what was accepted, then releases everything. Calls after it reject with `store_closed`. */
  close(): Promise<void>;
}
