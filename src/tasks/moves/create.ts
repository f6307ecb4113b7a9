// Moves of a task whose job is being created.

import type { JsonObject } from '../../exact-json.ts';
import type { Observation } from '../observation.ts';
import type { Task } from '../task.ts';
import { type Context, calm, change, lookIn, type Move, trouble, unchanged } from './move.ts';

/** The first wait before a doubt is looked at again; an old one waits for a quarter of its age, up to `max`. */
const doubtMs = 2_000;

export function created(task: Task, captures: JsonObject, context: Context): Move {
  if (task.stage !== 'creating') return unchanged(task, context);
  const step = task.create.step + 1;
  const linked = step >= context.plan.createSteps.length;
  const next = change(task, {
    job: { ...task.job, ...captures },
    create: { step, sentAt: context.now, doubt: undefined },
    trouble: calm,
    ...(linked && { stage: 'following', linkedAt: context.now }),
  });
  const dueNow = !linked || next.cancel?.state === 'requested';
  return {
    task: next,
    schedule: lookIn(context, dueNow ? 0 : context.plan.timing.every),
    durable: true,
  };
}

export function createOpen(
  task: Task,
  observation: Extract<Observation, { kind: 'create_doubt' | 'create_later' }>,
  context: Context,
): Move {
  if (task.stage !== 'creating') return unchanged(task, context);
  const doubtful = observation.kind === 'create_doubt';
  const before = task.create.doubt;
  const doubt = doubtful
    ? {
        since: before?.since ?? context.now,
        reason: observation.reason,
        looks: (before?.looks ?? 0) + (observation.looked ? 1 : 0),
      }
    : undefined;
  const next = change(task, {
    create: { ...task.create, doubt },
    trouble: doubtful ? calm : trouble(task, 'unreachable', observation.reason, context.now),
  });
  const age = context.now - (before?.since ?? task.createdAt);
  const pause = Math.max(doubtMs, Math.min(age / 4, context.plan.timing.max));
  return {
    task: next,
    schedule: lookIn(context, Math.max(observation.retryAfterMs ?? 0, pause)),
    durable: doubtful && before === undefined,
  };
}

/** Stored before the request is sent again: looks that follow count from this send. */
export function createAgain(task: Task, context: Context): Move {
  if (task.stage !== 'creating') return unchanged(task, context);
  const create = { ...task.create, sentAt: context.now, doubt: undefined };
  return { task: change(task, { create, trouble: calm }), schedule: lookIn(context, 0), durable: true };
}
