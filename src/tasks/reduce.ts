// The task state machine: pure functions from a task and an observation to the next task, its next look and,
// at the end, its outcome. No I/O, no clock, no randomness of its own. The diagram is in task.ts.
//
// Rules that hold everywhere:
// - first terminal wins: an ended task is returned as it is, whatever is observed;
// - a finishing task keeps its verdict: only its result, or running out of tries, ends it;
// - a poll error is never an outcome, only silence beyond the deadline or the upstream's own word is;
// - a question key is never used twice.

import { composeMessage } from './message.ts';
import { cancelOutcome, cancelRequested, escalation } from './moves/cancel.ts';
import { afterEnd, cleanupAtEnd } from './moves/cleanup.ts';
import { createAgain, created, createOpen } from './moves/create.ts';
import { deadline, end, resultLater, resultReady } from './moves/end.ts';
import { type Context, type Move, unchanged } from './moves/move.ts';
import { polled } from './moves/poll.ts';
import { answerOutcome, answersAccepted } from './moves/questions.ts';
import type { Observation } from './observation.ts';
import { sameJson } from './same-json.ts';
import type { Task } from './task.ts';

export interface Transition extends Move {
  /** Whether a client can see a difference. The task is the same object when nothing in the record changed. */
  visible: boolean;
}

/** Applies observations in order as one change, so that no reader sees a state between them. */
export function reduce(task: Task, observations: readonly Observation[], context: Context): Transition {
  if (task.stage === 'ended')
    return { ...afterEnd(task, observations, context), durable: false, visible: false };
  let move: Move = unchanged(task, context);
  let durable = false;
  for (const observation of observations) {
    if (move.task.stage === 'ended') break;
    move = step(move.task, observation, context);
    durable ||= move.durable;
  }
  return completed(task, { ...move, durable }, context);
}

function step(task: Task, observation: Observation, context: Context): Move {
  switch (observation.kind) {
    case 'created':
      return created(task, observation.job, context);
    case 'create_doubt':
    case 'create_later':
      return createOpen(task, observation, context);
    case 'create_again':
      return createAgain(task, context);
    case 'create_refused':
      return end(task, {
        kind: 'error',
        ending: 'upstream_error',
        message: `the job was not created: ${observation.reason}`,
      });
    case 'create_unknown':
      return end(task, {
        kind: 'error',
        ending: 'outcome_unknown',
        message: `outcome unknown: a job may exist upstream (${observation.reason})`,
      });
    case 'cancel_requested':
      return cancelRequested(task, context);
    case 'cancel_outcome':
      return cancelOutcome(task, observation, context);
    case 'cleaned':
    case 'cleanup_later':
      return unchanged(task, context);
    case 'answers':
      return answersAccepted(task, observation.answers, context);
    case 'answer_outcome':
      return answerOutcome(task, observation.key, observation.outcome, context);
    case 'deadline':
      return deadline(task, context);
    case 'result':
      return resultReady(task, observation.result, context);
    case 'result_later':
      return resultLater(task, observation, context);
    default:
      return polled(task, observation, context);
  }
}

/**
 * Finishes a transition: composes the message, counts the version once, moves `updatedAt` when a client can see
 * the change, and never lets a look slip behind the deadline or the next escalation of a cancel.
 */
function completed(before: Task, transition: Move, context: Context): Transition {
  const { now, plan } = context;
  const atEnd = transition.task.stage === 'ended' ? cleanupAtEnd(transition.task, context) : undefined;
  const schedule = atEnd?.schedule ?? transition.schedule;
  const latest = Math.min(before.deadline, escalation(transition.task, plan)?.dueAt ?? before.deadline);
  const bounded = schedule && {
    ...schedule,
    dueAt: Math.max(now, Math.min(schedule.dueAt, latest)),
  };
  const next = { ...transition.task, cleanup: atEnd?.cleanup, message: composeMessage(transition.task) };
  if (sameJson(next, before))
    return { ...transition, task: before, schedule: bounded, durable: false, visible: false };
  const visible =
    next.message !== before.message ||
    next.phase !== before.phase ||
    next.stage === 'ended' ||
    !sameJson(next.questions, before.questions);
  const task = {
    ...next,
    updatedAt: visible ? Math.max(now, before.updatedAt) : before.updatedAt,
    version: before.version + 1,
  };
  return { ...transition, task, schedule: bounded, visible };
}
