// The task state machine: pure functions from a task and an observation to the next task, its next look and,
// at the end, its outcome. No I/O, no clock, no randomness of its own. The diagram is in task.ts.
//
// Rules that hold everywhere:
// - first terminal wins: an ended task is returned as it is, whatever is observed;
// - a finishing task keeps its verdict: only its result, or running out of tries, ends it;
// - a poll error is never an outcome, only silence beyond the deadline or the upstream's own word is;
// - a question key is never used twice.

import type {
  AnswerOutcome,
  CancelOutcome,
  JobResult,
  PollObservation,
  Question,
  ToolPlan,
} from '../drivers/driver.ts';
import type { JsonObject } from '../exact-json.ts';
import type { Outcome } from './outcome.ts';
import type { AskedStem, OpenQuestion, PendingAnswer, Schedule, Task, Trouble } from './task.ts';

export type Observation =
  /** A create step is done; `job` holds its captures. */
  | { kind: 'created'; job: JsonObject }
  /** It is unknown whether the create step made a job. `looked`: a look-up found none. */
  | { kind: 'create_doubt'; reason: string; looked: boolean; retryAfterMs: number | undefined }
  /** The create step certainly made nothing and may run (again). */
  | { kind: 'create_later'; reason: string; retryAfterMs: number | undefined }
  /** A look-up has proved that the request made no job: it is about to be sent again. */
  | { kind: 'create_again' }
  /** A clear no to a request of which a look-up has proved that it made no job before. */
  | { kind: 'create_refused'; reason: string }
  /** The doubt can't be resolved. */
  | { kind: 'create_unknown'; reason: string }
  | PollObservation
  /** The job has ended and its result is at hand. Only after a status with a final phase. */
  | { kind: 'result'; result: JobResult }
  | { kind: 'result_later'; reason: string; retryAfterMs: number | undefined }
  | { kind: 'cancel_requested' }
  | { kind: 'cancel_outcome'; outcome: CancelOutcome }
  | { kind: 'answers'; answers: readonly Omit<PendingAnswer, 'stem' | 'fingerprint'>[] }
  | { kind: 'answer_outcome'; key: string; outcome: AnswerOutcome }
  /** The adapter's text or driver can't be loaded, so the job can't be followed for now. */
  | { kind: 'adapter_missing'; reason: string }
  | { kind: 'deadline' };

export interface Context {
  /** Wall time. */
  now: number;
  plan: Pick<ToolPlan, 'timing' | 'canCancel' | 'createSteps'>;
  /** The poll interval in force. */
  intervalMs: number;
  /** From [0, 1), for jitter. */
  random: number;
  /** Replaces known secrets in what is shown of a job's captures. Default: none are known. */
  redact?(text: string): string;
}

export interface Transition {
  /** The same object when nothing in the record changed. */
  task: Task;
  /** When to look next; null when the task has ended. */
  schedule: Schedule | null;
  /** Whether losing this change in a power failure would break a promise. */
  durable: boolean;
  /** Whether a client can see a difference. */
  visible: boolean;
  /** Set exactly when this transition ended the task. */
  outcome?: Outcome;
}

/** A transition before it is settled. */
type Move = Omit<Transition, 'visible'>;

/** A 404 within this time after the link may be an upstream that shows new jobs late. */
const missingGraceMs = 60_000;
const missingLimit = 3;
const unreadableLimit = 10;
/** How long a delivered answer may take to show in the upstream's status. */
const answerSettleMs = 60_000;
const refusalLimit = 3;
const growth = 1.5;
const jitter = 0.1;
/** After a cancel or an answer was sent, news is near. */
const soonMs = 1_000;
/** The first wait before a doubt is looked at again; an old one waits for a quarter of its age, up to `max`. */
const doubtMs = 2_000;
export const resultTryLimit = 5;

/** Applies observations in order as one change, so that no reader sees a state between them. */
export function reduce(task: Task, observations: readonly Observation[], context: Context): Transition {
  if (task.stage === 'ended') return { task, schedule: null, durable: false, visible: false };
  let move: Move = unchanged(task, context);
  let durable = false;
  for (const observation of observations) {
    if (move.task.stage === 'ended') break;
    move = step(move.task, observation, context);
    durable ||= move.durable;
  }
  return settled(task, { ...move, durable }, context.now);
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
      return cancelOutcome(task, observation.outcome, context);
    case 'answers':
      return answersAccepted(task, observation.answers, context);
    case 'answer_outcome':
      return answerOutcome(task, observation.key, observation.outcome, context);
    case 'deadline':
      return end(task, {
        kind: 'error',
        ending: 'timed_out',
        message: `timed out after ${duration(context.plan.timing.timeout)}; the job may still run${reference(task, context)}`,
      });
    case 'result':
      return resultReady(task, observation.result, context);
    case 'result_later':
      return resultLater(task, observation, context);
    default:
      return polled(task, observation, context);
  }
}

/** Fixes the verdict of a job that has ended but whose result is still to be fetched. */
export function verdictOf(observation: PollObservation): Task['verdict'] {
  if (observation.kind !== 'status') return undefined;
  const { phase } = observation;
  return phase === 'working' || phase === 'input_required' ? undefined : phase;
}

// ---- create ------------------------------------------------------------------------------------

function created(task: Task, captures: JsonObject, context: Context): Move {
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
    schedule: dueNow
      ? soon(context, 0)
      : { dueAt: context.now + context.plan.timing.every, intervalMs: context.plan.timing.every },
    durable: true,
  };
}

function createOpen(
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
    schedule: soon(context, Math.max(observation.retryAfterMs ?? 0, pause)),
    durable: doubtful && before === undefined,
  };
}

/** Stored before the request is sent again: looks that follow count from this send. */
function createAgain(task: Task, context: Context): Move {
  if (task.stage !== 'creating') return unchanged(task, context);
  const create = { ...task.create, sentAt: context.now, doubt: undefined };
  return { task: change(task, { create, trouble: calm }), schedule: soon(context, 0), durable: true };
}

// ---- polls -------------------------------------------------------------------------------------

function polled(
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
          message: `the upstream's replies carry no readable status: ${observation.reason}${reference(task, context)}`,
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
    message: `the upstream no longer knows this job: ${reason}${reference(task, context)}`,
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
  const base = {
    job: { ...task.job, ...observation.job },
    statusStage: observation.statusStage,
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
      message: observation.message ?? `the upstream could not carry out the job${reference(task, context)}`,
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
    return { task: next, schedule: soon(context, 0), durable: true };
  }
  const asking = asked(task, observation, context);
  const next = change(task, { ...base, ...asking });
  // An intermediate capture or a changed question is worth keeping over a power failure; a message is not.
  const durable = asking.questions.length > task.questions.length || !sameJson(next.job, task.job);
  const recovered = task.trouble.kind !== undefined && next.trouble.kind === undefined;
  const moved = recovered || next.phase !== task.phase || next.progress !== task.progress;
  if (pendingWork(next)) return { task: next, schedule: soon(context, 0), durable };
  const schedule = moved
    ? {
        dueAt:
          context.now + Math.max(wait(context.plan.timing.every, context), observation.retryAfterMs ?? 0),
        intervalMs: context.plan.timing.every,
      }
    : later(context, observation.retryAfterMs);
  return { task: next, schedule, durable };
}

// ---- questions and answers ---------------------------------------------------------------------

function asked(
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
  return state.quiet || (state.deliveredAt !== undefined && now - state.deliveredAt < answerSettleMs);
}

function withRefusal(question: Question, state: AskedStem, fresh: boolean): string {
  if (fresh || state.refusal === undefined) return question.message;
  return `The last answer was refused: ${state.refusal}. ${question.message}`;
}

function answersAccepted(
  task: Task,
  answers: readonly Omit<PendingAnswer, 'stem' | 'fingerprint'>[],
  context: Context,
): Move {
  const accepted: PendingAnswer[] = [];
  for (const answer of answers) {
    const open = task.questions.find((question) => question.key === answer.key);
    if (open) accepted.push({ ...answer, stem: open.stem, fingerprint: open.fingerprint });
  }
  if (accepted.length === 0) return unchanged(task, context);
  const questions = task.questions.filter((open) => !accepted.some((answer) => answer.key === open.key));
  const next = change(task, {
    questions,
    answers: [...task.answers, ...accepted],
    phase: questions.length > 0 ? 'input_required' : 'working',
  });
  return { task: next, schedule: soon(context, 0), durable: true };
}

function answerOutcome(task: Task, key: string, outcome: AnswerOutcome, context: Context): Move {
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
            ? { ...state, deliveredAt: undefined, fingerprint, quiet: true }
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
  return { task: next, schedule: soon(context, pendingWork(next) ? 0 : soonFor(context)), durable: true };
}

// ---- cancel ------------------------------------------------------------------------------------

function cancelRequested(task: Task, context: Context): Move {
  if (task.cancel !== undefined || task.stage === 'finishing') return unchanged(task, context);
  const state = context.plan.canCancel ? 'requested' : 'unsupported';
  const next = change(task, {
    cancel: { requestedAt: context.now, state },
    questions: [],
    answers: [],
    phase: 'working',
  });
  return { task: next, schedule: soon(context, 0), durable: true };
}

function cancelOutcome(task: Task, outcome: CancelOutcome, context: Context): Move {
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
  return { task: next, schedule: soon(context, soonFor(context)), durable: true };
}

// ---- result and end ----------------------------------------------------------------------------

function resultReady(task: Task, result: JobResult, context: Context): Move {
  if (task.verdict !== 'succeeded' && task.verdict !== 'failed') return unchanged(task, context);
  return end(task, { kind: 'result', ending: task.verdict, result });
}

function resultLater(
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

function end(task: Task, outcome: Outcome): Move {
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

// ---- shared ------------------------------------------------------------------------------------

const calm: Trouble = {
  kind: undefined,
  since: undefined,
  reason: undefined,
  missing: 0,
  unreadable: 0,
  resultTries: 0,
};

/** Counts of polls in a row end here; whoever counts adds its own. */
function trouble(task: Task, kind: Trouble['kind'], reason: string, now: number): Trouble {
  const since = task.trouble.kind === kind ? task.trouble.since : now;
  return { ...task.trouble, kind, reason, since, missing: 0, unreadable: 0 };
}

function change(task: Task, fields: Partial<Task>): Task {
  return { ...task, ...fields };
}

/**
 * Finishes a transition: composes the message, counts the version once, moves `updatedAt` when a client can see
 * the change, and never lets a look slip behind the deadline.
 */
function settled(before: Task, transition: Move, now: number): Transition {
  const { schedule } = transition;
  const bounded = schedule && {
    ...schedule,
    dueAt: Math.max(now, Math.min(schedule.dueAt, before.deadline)),
  };
  const next = { ...transition.task, message: composeMessage(transition.task) };
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

/** Longest statusMessage, in code points. */
const messageLimit = 500;
/** Longest part of it that comes from the upstream while taskferry has something to add. */
const partLimit = 300;

/** What the client reads: the upstream's own words first, then what taskferry has to add. */
function composeMessage(task: Task): string | undefined {
  if (task.stage === 'ended') return task.progress && cut(task.progress, messageLimit);
  const parts: string[] = [];
  if (task.create.doubt !== undefined) {
    parts.push(
      `It is not known yet whether the job was created: ${cut(task.create.doubt.reason, partLimit)}`,
    );
  }
  if (task.stage === 'finishing') {
    parts.push(`The job has ${task.verdict === 'succeeded' ? 'succeeded' : 'failed'}; fetching its result`);
  } else if (task.progress !== undefined) parts.push(task.progress);
  const { kind, since, reason } = task.trouble;
  if (kind === 'unknown_status') parts.push(`Unknown status ${reason}, read as working`);
  else if (kind === 'credential' || kind === 'adapter_missing') parts.push(cut(reason ?? '', partLimit));
  else if (kind !== undefined && since !== undefined) {
    parts.push(
      `${troubleWords[kind]} since ${new Date(since).toISOString()}: ${cut(reason ?? '', partLimit)}`,
    );
  }
  if (task.answers.length > 0) parts.push('Passing the answer on');
  if (task.cancel !== undefined) parts.push(cancelMessage(task.cancel.state));
  if (parts.length === 0) return undefined;
  // The upstream's own words give way to what taskferry has to say.
  const own = parts.slice(1).join('. ');
  const room = own === '' ? messageLimit : Math.max(messageLimit - points(own) - 2, 0);
  return cut([cut(parts[0] ?? '', room), ...parts.slice(1)].join('. '), messageLimit);
}

const troubleWords = {
  unreachable: 'Upstream unreachable',
  missing: 'The upstream does not find the job',
  unreadable: 'The upstream tells no status',
  rejected: 'The upstream refuses to tell the status',
} as const;

/** At most `limit` code points. */
function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const all = [...text];
  return all.length <= limit ? text : `${all.slice(0, Math.max(limit - 1, 0)).join('')}…`;
}

function points(text: string): number {
  return [...text].length;
}

function cancelMessage(state: NonNullable<Task['cancel']>['state']): string {
  if (state === 'unsupported')
    return 'Cancel requested, but this upstream cannot cancel jobs: following it to its end';
  if (state === 'refused')
    return 'Cancel requested, but the upstream refused it: following the job to its end';
  return 'Cancel requested';
}

function pendingWork(task: Task): boolean {
  return task.cancel?.state === 'requested' || task.answers.length > 0;
}

/** A look after the poll interval, which grows; never before `retryAfterMs`, never after the deadline. */
function later(context: Context, retryAfterMs = 0): Schedule {
  const { every, max } = context.plan.timing;
  const intervalMs = Math.min(Math.max(context.intervalMs * growth, every), Math.max(max, every));
  const delay = Math.max(wait(context.intervalMs, context), retryAfterMs);
  return { dueAt: context.now + delay, intervalMs };
}

function unchanged(task: Task, context: Context): Move {
  return { task, schedule: pendingWork(task) ? soon(context, 0) : later(context), durable: false };
}

function soon(context: Context, delayMs: number): Schedule {
  return { dueAt: context.now + delayMs, intervalMs: context.plan.timing.every };
}

function soonFor(context: Context): number {
  return Math.min(soonMs, context.plan.timing.every);
}

function wait(intervalMs: number, context: Context): number {
  return Math.round(intervalMs * (1 + jitter * (2 * context.random - 1)));
}

/** The job's own reference, for messages about a job nobody follows any more. */
function reference(task: Task, { redact = (text) => text }: Context): string {
  const known = Object.entries(task.job).filter(([, value]) => typeof value !== 'object' || value === null);
  if (known.length === 0) return '';
  const text = redact(known.map(([name, value]) => `${name}: ${String(value)}`).join(', '));
  return ` (${cut(text, partLimit)})`;
}

function duration(ms: number): string {
  for (const [unit, size] of [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1_000],
  ] as const) {
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${ms}ms`;
}

/** Deep equality of plain data; a member that is undefined equals one that is absent, as in stored JSON. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as { [key: string]: unknown };
  const right = b as { [key: string]: unknown };
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    if (!sameJson(own(left, key), own(right, key))) return false;
  }
  return true;
}

function own(object: { [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
