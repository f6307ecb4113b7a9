// Moves of a task whose job was looked at. A poll error is never an outcome.

import type { PollObservation } from '../../drivers/driver.ts';
import { formatDuration } from '../../duration.ts';
import { reference } from '../message.ts';
import type { Observation } from '../observation.ts';
import { sameJson } from '../same-json.ts';
import type { Task, Trouble } from '../task.ts';
import { end, verdictOf } from './end.ts';
import {
  type Context,
  calm,
  change,
  jittered,
  later,
  lookIn,
  type Move,
  pendingWork,
  trouble,
  unchanged,
} from './move.ts';
import { asked } from './questions.ts';

/** A 404 within this time after the link may be an upstream that shows new jobs late. */
const missingGraceMs = 60_000;
const missingLimit = 3;
const unreadableLimit = 10;

export function polled(
  task: Task,
  observation: PollObservation | Extract<Observation, { kind: 'adapter_missing' }>,
  context: Context,
): Move {
  if (observation.kind === 'status') return status(task, observation, context);
  if (task.stage === 'finishing') return unchanged(task, context);
  switch (observation.kind) {
    case 'gone':
      return lost(task, observation.reason, context);
    case 'missing': {
      const inGrace = context.now < (task.linkedAt ?? task.createdAt) + missingGraceMs;
      const missing = inGrace ? 0 : task.trouble.missing + 1;
      if (missing >= missingLimit) return lost(task, observation.reason, context);
      return troubled(
        task,
        { ...trouble(task, 'missing', observation.reason, context.now), missing },
        context,
      );
    }
    case 'unreadable': {
      const unreadable = task.trouble.unreadable + 1;
      if (unreadable >= unreadableLimit) {
        return end(task, {
          kind: 'error',
          ending: 'status_unreadable',
          message: `the upstream's replies carry no readable status: ${observation.reason}${reference(task, context.redact)}`,
        });
      }
      return troubled(
        task,
        { ...trouble(task, 'unreadable', observation.reason, context.now), unreadable },
        context,
      );
    }
    case 'unreachable':
    case 'credential':
      return troubled(
        task,
        trouble(task, observation.kind, observation.reason, context.now),
        context,
        observation.retryAfterMs,
      );
    case 'rejected':
      return troubled(task, trouble(task, 'rejected', observation.reason, context.now), context);
    case 'adapter_missing':
      return troubled(task, trouble(task, 'adapter_missing', observation.reason, context.now), context);
  }
}

function lost(task: Task, reason: string, context: Context): Move {
  return end(task, {
    kind: 'error',
    ending: 'job_lost',
    message: `the upstream no longer knows this job: ${reason}${reference(task, context.redact)}`,
  });
}

function troubled(task: Task, next: Trouble, context: Context, retryAfterMs?: number): Move {
  const changed = change(task, { trouble: next });
  return { task: changed, schedule: later(context, retryAfterMs), durable: false };
}

function status(
  task: Task,
  observation: Extract<PollObservation, { kind: 'status' }>,
  context: Context,
): Move {
  if (task.stage === 'finishing') return unchanged(task, context);
  const verdict = verdictOf(observation);
  const moved = observation.statusStage !== task.statusStage;
  const stageSince = moved ? context.now : task.stageSince;
  const base = {
    job: { ...task.job, ...observation.job },
    statusStage: observation.statusStage,
    stageSince,
    progress: observation.message,
    trouble:
      observation.unknownWord === undefined
        ? calm
        : trouble(task, 'unknown_status', observation.unknownWord, context.now),
  };
  if (verdict === 'cancelled') {
    return end(change(task, base), {
      kind: 'cancelled',
      ending: 'cancelled',
      message: observation.message,
    });
  }
  if (verdict === 'errored') {
    return end(change(task, base), {
      kind: 'error',
      ending: 'upstream_error',
      message:
        observation.message ?? `the upstream could not carry out the job${reference(task, context.redact)}`,
    });
  }
  if (verdict !== undefined) {
    const next = change(task, {
      ...base,
      stage: 'finishing',
      verdict,
      phase: 'working',
      questions: [],
      answers: [],
    });
    return { task: next, schedule: lookIn(context, 0), durable: true };
  }
  const stage = context.plan.stages[observation.statusStage];
  const inStage = context.now - (stageSince ?? task.linkedAt ?? task.createdAt);
  if (stage?.withinMs !== undefined && inStage >= stage.withinMs && observation.phase === 'working') {
    return end(change(task, base), {
      kind: 'error',
      ending: 'job_lost',
      message: `the job did not get beyond ${stage.name} within ${formatDuration(stage.withinMs)}${reference(task, context.redact)}`,
    });
  }
  const asking = asked(task, observation, context);
  const next = change(task, { ...base, ...asking });
  // An intermediate capture or a changed question is worth keeping over a power failure; a message is not.
  const durable = asking.questions.length > task.questions.length || !sameJson(next.job, task.job);
  const recovered = task.trouble.kind !== undefined && next.trouble.kind === undefined;
  const news = recovered || next.phase !== task.phase || next.progress !== task.progress;
  if (pendingWork(next)) return { task: next, schedule: lookIn(context, 0), durable };
  const schedule = news
    ? lookIn(context, Math.max(jittered(context.plan.timing.every, context), observation.retryAfterMs ?? 0))
    : later(context, observation.retryAfterMs);
  return { task: next, schedule, durable };
}
