// Moves to the end: a verdict, a result, a failure of the call itself.

import { type JobResult, type PollObservation, type Verdict, withoutResult } from '../../drivers/driver.ts';
import { formatDuration } from '../../duration.ts';
import { reference } from '../message.ts';
import type { Observation } from '../observation.ts';
import type { Outcome } from '../outcome.ts';
import type { Task } from '../task.ts';
import { type Context, calm, change, later, type Move, trouble, unchanged } from './move.ts';

/** Tries to fetch a result. After the last the task ends without it. */
const resultTryLimit = 5;

/** The verdict in what a poll saw; undefined while the job goes on. */
export function verdictOf(observation: PollObservation): Verdict | undefined {
  if (observation.kind !== 'status') return undefined;
  const { phase } = observation;
  return phase === 'working' || phase === 'input_required' ? undefined : phase;
}

/** The task ends with the verdict that it has. */
export function resultReady(task: Task, result: JobResult, context: Context): Move {
  if (task.verdict !== 'succeeded' && task.verdict !== 'failed') return unchanged(task, context);
  return end(task, { kind: 'result', ending: task.verdict, result });
}

/** Tried again, until no try or no time is left: then the task ends without its result. */
export function resultLater(
  task: Task,
  observation: Extract<Observation, { kind: 'result_later' }>,
  context: Context,
): Move {
  if (task.stage !== 'finishing') return unchanged(task, context);
  const resultTries = task.trouble.resultTries + 1;
  if (resultTries >= resultTryLimit || context.now >= task.deadline)
    return resultReady(task, observation.fallback, context);
  const next = change(task, {
    trouble: { ...trouble(task, 'unreachable', observation.reason, context.now), resultTries },
  });
  return { task: next, schedule: later(context, observation.retryAfterMs), durable: false };
}

/** Ends the task, whatever stage it is in. */
export function end(task: Task, outcome: Outcome): Move {
  const next = change(task, {
    stage: 'ended',
    phase: phaseOf(outcome),
    ending: outcome.ending,
    questions: [],
    answers: [],
    trouble: calm,
    progress: outcome.kind === 'result' ? task.progress : outcome.message,
  });
  return { task: next, schedule: null, durable: true, outcome };
}

function phaseOf(outcome: Outcome): Task['phase'] {
  if (outcome.kind === 'result') return outcome.ending;
  return outcome.kind === 'cancelled' ? 'cancelled' : 'errored';
}

/** Time is over. A job whose verdict is known keeps it, without the result that could not be fetched. */
export function deadline(task: Task, context: Context): Move {
  if (task.stage !== 'finishing') {
    return end(task, {
      kind: 'error',
      ending: 'timed_out',
      message: `timed out after ${formatDuration(context.plan.timing.timeout)}; the job may still run${reference(task, context.redact)}`,
    });
  }
  const why = task.trouble.reason ?? 'out of time';
  return resultReady(task, withoutResult(task.verdict !== 'succeeded', why), context);
}
