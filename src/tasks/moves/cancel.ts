// Moves of a task that its caller wants cancelled: the wish is kept, the upstream has the last word.

import type { ToolPlan } from '../../drivers/driver.ts';
import type { Observation } from '../observation.ts';
import type { Task } from '../task.ts';
import { type Context, change, later, lookIn, type Move, newsDelay, trouble, unchanged } from './move.ts';

export function cancelRequested(task: Task, context: Context): Move {
  if (task.cancel !== undefined || task.stage === 'finishing') return unchanged(task, context);
  const state = context.plan.canCancel ? 'requested' : 'unsupported';
  const next = change(task, {
    cancel: { requestedAt: context.now, state, sentAt: undefined, escalated: undefined },
    questions: [],
    answers: [],
    phase: 'working',
  });
  return { task: next, schedule: lookIn(context, 0), durable: true };
}

export function cancelOutcome(
  task: Task,
  { outcome, afterMs }: Extract<Observation, { kind: 'cancel_outcome' }>,
  context: Context,
): Move {
  const { cancel } = task;
  const awaited = afterMs === 0 ? 'requested' : 'sent';
  if (cancel?.state !== awaited) return unchanged(task, context);
  if (outcome.kind === 'later') {
    const next = change(task, { trouble: trouble(task, 'unreachable', outcome.reason, context.now) });
    return { task: next, schedule: later(context, outcome.retryAfterMs), durable: false };
  }
  if (afterMs > 0) {
    // Whatever came of it, the cancel stays sent: what escalates further is still to come.
    const next = change(task, { cancel: { ...cancel, escalated: afterMs } });
    return { task: next, schedule: lookIn(context, newsDelay(context)), durable: true };
  }
  if (outcome.kind === 'inapplicable') return { task, schedule: later(context), durable: false };
  const next = change(task, {
    cancel: { ...cancel, state: outcome.kind, sentAt: context.now },
    ...(outcome.kind === 'refused' && { progress: outcome.reason }),
  });
  return { task: next, schedule: lookIn(context, newsDelay(context)), durable: true };
}

/** The next step of a cancel that was sent to a job that goes on; undefined when there is none. */
export function escalation(
  { cancel }: Task,
  { escalations }: Pick<ToolPlan, 'escalations'>,
): { afterMs: number; dueAt: number } | undefined {
  if (cancel?.state !== 'sent' || cancel.sentAt === undefined) return undefined;
  const afterMs = escalations.find((ms) => ms > (cancel.escalated ?? 0));
  return afterMs === undefined ? undefined : { afterMs, dueAt: cancel.sentAt + afterMs };
}

/** The cancel or escalation to be sent now, by its `after`; undefined: none. */
export function cancelDue(task: Task, plan: Pick<ToolPlan, 'escalations'>, now: number): number | undefined {
  if (task.cancel?.state === 'requested') return 0;
  const next = escalation(task, plan);
  return next !== undefined && next.dueAt <= now ? next.afterMs : undefined;
}
