// Moves of a task that its caller wants cancelled: the wish is kept, the upstream has the last word.

import type { CancelOutcome } from '../../drivers/driver.ts';
import type { Task } from '../task.ts';
import { type Context, change, later, lookIn, type Move, newsDelay, trouble, unchanged } from './move.ts';

export function cancelRequested(task: Task, context: Context): Move {
  if (task.cancel !== undefined || task.stage === 'finishing') return unchanged(task, context);
  const state = context.plan.canCancel ? 'requested' : 'unsupported';
  const next = change(task, {
    cancel: { requestedAt: context.now, state },
    questions: [],
    answers: [],
    phase: 'working',
  });
  return { task: next, schedule: lookIn(context, 0), durable: true };
}

export function cancelOutcome(task: Task, outcome: CancelOutcome, context: Context): Move {
  if (task.cancel?.state !== 'requested') return unchanged(task, context);
  if (outcome.kind === 'inapplicable') return { task, schedule: later(context), durable: false };
  if (outcome.kind === 'later') {
    const next = change(task, { trouble: trouble(task, 'unreachable', outcome.reason, context.now) });
    return { task: next, schedule: later(context, outcome.retryAfterMs), durable: false };
  }
  const next = change(task, {
    cancel: { ...task.cancel, state: outcome.kind },
    ...(outcome.kind === 'refused' && { progress: outcome.reason }),
  });
  return { task: next, schedule: lookIn(context, newsDelay(context)), durable: true };
}
