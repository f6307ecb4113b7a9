// What all moves of a task share: the context they are made in, changed records, and when to look next.

import type { ToolPlan } from '../../drivers/driver.ts';
import type { Outcome } from '../outcome.ts';
import type { Schedule, Task, Trouble } from '../task.ts';

export interface Context {
  /** Wall time. */
  now: number;
  plan: Pick<ToolPlan, 'timing' | 'canCancel' | 'createSteps' | 'stages'>;
  /** The poll interval in force. */
  intervalMs: number;
  /** From [0, 1), for jitter. */
  random: number;
  /** Replaces known secrets in what is shown of a job's captures. Default: none are known. */
  redact?(text: string): string;
}

/** What one observation does to a task. */
export interface Move {
  task: Task;
  /** When to look next; null when the task has ended. */
  schedule: Schedule | null;
  /** Whether losing this change in a power failure would break a promise. */
  durable: boolean;
  /** Set exactly when this move ended the task. */
  outcome?: Outcome;
}

const growth = 1.5;
const jitter = 0.1;
/** After a cancel or an answer was sent, news is near. */
const soonMs = 1_000;

export const calm: Trouble = {
  kind: undefined,
  since: undefined,
  reason: undefined,
  missing: 0,
  unreadable: 0,
  resultTries: 0,
};

/** Counts of polls in a row end here; whoever counts adds its own. */
export function trouble(task: Task, kind: Trouble['kind'], reason: string, now: number): Trouble {
  const since = task.trouble.kind === kind ? task.trouble.since : now;
  return { ...task.trouble, kind, reason, since, missing: 0, unreadable: 0 };
}

export function change(task: Task, fields: Partial<Task>): Task {
  return { ...task, ...fields };
}

export function pendingWork(task: Task): boolean {
  return task.cancel?.state === 'requested' || task.answers.length > 0;
}

/** A look after the poll interval, which grows; never before `retryAfterMs`, never after the deadline. */
export function later(context: Context, retryAfterMs = 0): Schedule {
  const { every, max } = context.plan.timing;
  const intervalMs = Math.min(Math.max(context.intervalMs * growth, every), Math.max(max, every));
  const delay = Math.max(wait(context.intervalMs, context), retryAfterMs);
  return { dueAt: context.now + delay, intervalMs };
}

export function unchanged(task: Task, context: Context): Move {
  return { task, schedule: pendingWork(task) ? soon(context, 0) : later(context), durable: false };
}

export function soon(context: Context, delayMs: number): Schedule {
  return { dueAt: context.now + delayMs, intervalMs: context.plan.timing.every };
}

export function soonFor(context: Context): number {
  return Math.min(soonMs, context.plan.timing.every);
}

export function wait(intervalMs: number, context: Context): number {
  return Math.round(intervalMs * (1 + jitter * (2 * context.random - 1)));
}
