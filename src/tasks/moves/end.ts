// Moves to the end: a verdict, a result, a failure of the call itself.

import type { JobResult, PollObservation, Verdict } from '../../drivers/driver.ts';
import { duration, reference } from '../message.ts';
import type { Observation } from '../observation.ts';
import type { Outcome } from '../outcome.ts';
import type { Task } from '../task.ts';
import { type Context, calm, change, later, type Move, trouble, unchanged } from './move.ts';

export const resultTryLimit = 5;

/** The verdict in what a poll saw; undefined while the job goes on. */
export function verdictOf(observation: PollObservation): Verdict | undefined {
  if (observation.kind !== 'status') return undefined;
  const { phase } = observation;
  return phase === 'working' || phase === 'input_required' ? undefined : phase;
}

export function resultReady(task: Task, result: JobResult, context: Context): Move {
  if (task.verdict !== 'succeeded' && task.verdict !== 'failed') return unchanged(task, context);
  return end(task, { kind: 'result', ending: task.verdict, result });
}

export function resultLater(
  task: Task,
  observation: Extract<Observation, { kind: 'result_later' }>,
  context: Context,
): Move {
  if (task.stage !== 'finishing') return unchanged(task, context);
  const resultTries = task.trouble.resultTries + 1;
  const next = change(task, {
    trouble: { ...trouble(task, 'unreachable', observation.reason, context.now), resultTries },
  });
  return { task: next, schedule: later(context, observation.retryAfterMs), durable: false };
}

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
      message: `timed out after ${duration(context.plan.timing.timeout)}; the job may still run${reference(task, context.redact)}`,
    });
  }
  const isError = task.verdict !== 'succeeded';
  const text = `The job ${isError ? 'failed' : 'succeeded'}.\nIts result could not be read: ${task.trouble.reason ?? 'out of time'}`;
  return resultReady(task, { isError, text, structured: undefined, links: [] }, context);
}
