// What all moves of a task share: the context they are made in, changed records, and when to look next.

import type { ToolPlan } from '../../drivers/driver.ts';
import type { Outcome } from '../outcome.ts';
import type { Schedule, Task, Trouble } from '../task.ts';

export interface Context {
  /** Wall time. */
  now: number;
  plan: Pick<ToolPlan, 'timing' | 'canCancel' | 'cleansUp' | 'escalations' | 'createSteps' | 'stages'>;
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
/** The longest wait for news after a cancel or an answer was sent. */
const newsMs = 1_000;

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

/** The task with other values in some fields; its version is counted by `reduce`. */
export function change(task: Task, fields: Partial<Task>): Task {
  return { ...task, ...fields };
}

/** Whether something waits to be sent upstream. */
export function pendingWork(task: Task): boolean {
  return task.cancel?.state === 'requested' || task.answers.length > 0;
}

/** A look after the poll interval, which grows; never before `retryAfterMs`, never after the deadline. */
export function later(context: Context, retryAfterMs = 0): Schedule {
  const { every, max } = context.plan.timing;
  const intervalMs = Math.min(Math.max(context.intervalMs * growth, every), Math.max(max, every));
  const delay = Math.max(jittered(context.intervalMs, context), retryAfterMs);
  return { dueAt: context.now + delay, intervalMs };
}

/** What an observation does that says nothing new, or comes when it no longer matters. */
export function unchanged(task: Task, context: Context): Move {
  return { task, schedule: pendingWork(task) ? lookIn(context, 0) : later(context), durable: false };
}

/** A look after exactly `delayMs`; the interval starts anew at `every`. */
export function lookIn(context: Context, delayMs: number): Schedule {
  return { dueAt: context.now + delayMs, intervalMs: context.plan.timing.every };
}

/** When the upstream is likely to show what a cancel or an answer has done. Milliseconds from now. */
export function newsDelay(context: Context): number {
  return Math.min(newsMs, context.plan.timing.every);
}

/** `intervalMs` a little sooner or later, so that tasks of one moment don't stay together. */
export function jittered(intervalMs: number, context: Context): number {
  return Math.round(intervalMs * (1 + jitter * (2 * context.random - 1)));
}
