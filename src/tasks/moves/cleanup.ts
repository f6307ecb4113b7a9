// Moves of an ended task whose job has left something upstream. Nothing of them is visible, and nothing changes the end.

import type { Observation } from '../observation.ts';
import type { Schedule, Task } from '../task.ts';
import { type Context, change, later, lookIn } from './move.ts';

const cleanupTryLimit = 5;

/** The first clean-up of a task that is about to end; undefined when there is nothing to be done. */
export function cleanupAtEnd(
  task: Task,
  context: Context,
): { cleanup: NonNullable<Task['cleanup']>; schedule: Schedule } | undefined {
  if (!context.plan.cleansUp || Object.keys(task.job).length === 0) return undefined;
  return { cleanup: { tries: 0 }, schedule: lookIn(context, 0) };
}

/** What an observation does to an ended task; the same task when it does nothing. */
export function afterEnd(
  task: Task,
  observations: readonly Observation[],
  context: Context,
): { task: Task; schedule: Schedule | null } {
  const seen = observations.find(({ kind }) => kind === 'cleaned' || kind === 'cleanup_later');
  if (task.cleanup === undefined || seen === undefined) return { task, schedule: null };
  const tries = task.cleanup.tries + 1;
  const over = seen.kind !== 'cleanup_later' || tries >= cleanupTryLimit;
  const next = change(task, { cleanup: over ? undefined : { tries }, version: task.version + 1 });
  const retryAfterMs = seen.kind === 'cleanup_later' ? seen.retryAfterMs : undefined;
  return { task: next, schedule: over ? null : later(context, retryAfterMs) };
}
