// Moves of a task whose job asks questions, and of the answers to them. A question key is never used twice.

import type { AnswerOutcome, PollObservation, Question } from '../../drivers/driver.ts';
import type { AskedStem, GivenAnswer, OpenQuestion, PendingAnswer, Task } from '../task.ts';
import {
  type Context,
  change,
  later,
  lookIn,
  type Move,
  newsDelay,
  pendingWork,
  trouble,
  unchanged,
} from './move.ts';

/** How long a delivered answer may take to show in the upstream's status. */
const answerGraceMs = 60_000;
const refusalLimit = 3;
/** Different questions in one task's life. */
const stemLimit = 1_000;

export function asked(
  task: Task,
  observation: Extract<PollObservation, { kind: 'status' }>,
  context: Context,
): Pick<Task, 'phase' | 'questions' | 'asked'> {
  if (observation.phase !== 'input_required') {
    // The upstream was seen outside input_required: the next wait is a new one.
    const rested = Object.fromEntries(
      Object.entries(task.asked).map(([stem, state]) => [stem, { ...neverAsked, count: state.count }]),
    );
    return { phase: 'working', questions: [], asked: rested };
  }
  const questions: OpenQuestion[] = [];
  const stems: { [stem: string]: AskedStem } = { ...task.asked };
  if (task.cancel === undefined) {
    for (const question of observation.questions) {
      const open = task.questions.find(
        (o) => o.stem === question.stem && o.fingerprint === question.fingerprint,
      );
      if (open) {
        questions.push(open);
        continue;
      }
      // Keys are never used twice, so every stem is remembered: a job that makes up new ones is asked no more.
      if (stems[question.stem] === undefined && Object.keys(stems).length >= stemLimit) continue;
      const state = stems[question.stem] ?? neverAsked;
      if (isQuiet(task, question, state, context.now)) continue;
      const count = state.count + 1;
      const fresh = state.fingerprint !== undefined && state.fingerprint !== question.fingerprint;
      stems[question.stem] = fresh ? { ...neverAsked, count } : { ...state, count, deliveredAt: undefined };
      questions.push({
        ...question,
        key: `${question.stem}-${count}`,
        message: withRefusal(question, state, fresh),
      });
    }
  }
  return { phase: questions.length > 0 ? 'input_required' : 'working', questions, asked: stems };
}

const neverAsked: AskedStem = {
  count: 0,
  deliveredAt: undefined,
  fingerprint: undefined,
  refusals: 0,
  refusal: undefined,
  quiet: false,
};

function isQuiet(task: Task, question: Question, state: AskedStem, now: number): boolean {
  if (task.answers.some((answer) => answer.stem === question.stem)) return true;
  if (state.fingerprint !== question.fingerprint) return false;
  return state.quiet || (state.deliveredAt !== undefined && now - state.deliveredAt < answerGraceMs);
}

function withRefusal(question: Question, state: AskedStem, fresh: boolean): string {
  if (fresh || state.refusal === undefined) return question.message;
  return `The last answer was refused: ${state.refusal}. ${question.message}`;
}

export function answersAccepted(task: Task, answers: readonly GivenAnswer[], context: Context): Move {
  const accepted: PendingAnswer[] = [];
  for (const answer of answers) {
    const open = task.questions.find((question) => question.key === answer.key);
    if (open === undefined) continue;
    const { stem, ask, item, fingerprint } = open;
    accepted.push({ ...answer, stem, ask, item, fingerprint });
  }
  if (accepted.length === 0) return unchanged(task, context);
  const questions = task.questions.filter((open) => !accepted.some((answer) => answer.key === open.key));
  const next = change(task, {
    questions,
    answers: [...task.answers, ...accepted],
    phase: questions.length > 0 ? 'input_required' : 'working',
  });
  return { task: next, schedule: lookIn(context, 0), durable: true };
}

export function answerOutcome(task: Task, key: string, outcome: AnswerOutcome, context: Context): Move {
  const answer = task.answers.find((pending) => pending.key === key);
  if (!answer) return unchanged(task, context);
  if (outcome.kind === 'later') {
    const next = change(task, { trouble: trouble(task, 'unreachable', outcome.reason, context.now) });
    return { task: next, schedule: later(context, outcome.retryAfterMs), durable: false };
  }
  const state = task.asked[answer.stem] ?? neverAsked;
  const { fingerprint } = answer;
  const next = change(task, {
    answers: task.answers.filter((pending) => pending.key !== key),
    asked: {
      ...task.asked,
      [answer.stem]:
        outcome.kind === 'delivered'
          ? { ...state, deliveredAt: context.now, fingerprint, refusals: 0, refusal: undefined, quiet: false }
          : outcome.kind === 'unhandled'
            ? {
                ...state,
                deliveredAt: undefined,
                fingerprint,
                refusals: 0,
                refusal: undefined,
                quiet: true,
              }
            : {
                ...state,
                deliveredAt: undefined,
                fingerprint,
                refusals: state.refusals + 1,
                refusal: outcome.reason,
                quiet: state.refusals + 1 > refusalLimit,
              },
    },
  });
  return { task: next, schedule: lookIn(context, pendingWork(next) ? 0 : newsDelay(context)), durable: true };
}
