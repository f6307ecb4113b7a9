// Running one step of an adapter: when, request, expect, capture. What the outcome means is the caller's.

import { messageLimit } from '../cap-text.ts';
import type { ReplyMeanings, Step } from '../config/adapter.ts';
import { EvaluationFault, type Expression, type Scope } from '../config/expression.ts';
import { type Json, type JsonObject, stringifyExact } from '../exact-json.ts';
import { cleanLine, excerptLimit } from './clean-text.ts';
import type { Connection, JobView, PerformOptions, Response, StepReply } from './driver.ts';

/** What every step of one tool runs with. */
export interface StepContext {
  connection: Connection;
  /** Replaces known secret values. */
  redact(text: string): string;
  /** Values of `env:`, which expressions may read anywhere. */
  env(): JsonObject;
  /** An expression that failed on a reply: counted, and logged for whoever mends the adapter. */
  fault(what: string, error: EvaluationFault): void;
  /** A status word that no rule knows: counted and reported. */
  unknownStatus(word: string): void;
  /** A poll that the upstream refuses to answer: reported, since waiting is not likely to mend it. */
  pollRejected(status: number, reason: string): void;
}

export type StepRun =
  /** `when` did not hold. */
  | { kind: 'skipped' }
  | { kind: 'failed'; failure: Extract<StepReply, { kind: 'failed' }> }
  /** A reply that `expect` does not accept, or whose body can't be read, or that the step gives a meaning. */
  | { kind: 'unexpected'; reply: Reply; reason: string; meaning: Meaning }
  | { kind: 'done'; reply: Reply; captured: JsonObject; missing: readonly string[] };

/** What the step itself says of a reply; undefined: what its status says. */
export type Meaning = keyof ReplyMeanings | undefined;

export type Reply = Extract<StepReply, { kind: 'reply' }>;

/** Most bytes of one captured value: captures are stored with the task. */
const captureLimit = 4_096;

/** The names that expressions of this tool may read. `response` and `answer` are added where they exist. */
export function scopeOf(
  context: StepContext,
  view: JobView,
  extra: { response?: Response | undefined; answer?: JsonObject; fetched?: JsonObject } = {},
): Scope {
  return {
    args: view.args,
    job: view.job,
    confirm: view.confirm,
    task: { key: view.key, createdAt: new Date(view.createdAt).toISOString() },
    env: context.env(),
    ...(extra.response !== undefined && { response: extra.response as JsonObject }),
    ...(extra.answer !== undefined && { answer: extra.answer }),
    ...(extra.fetched !== undefined && { fetched: extra.fetched }),
  };
}

/** Runs a step. Captures whose value is absent are listed in `missing`. */
export async function runStep(
  context: StepContext,
  step: Step,
  scope: Scope,
  options?: PerformOptions,
): Promise<StepRun> {
  if (step.when !== undefined && !holds(context, step.when, scope, `${step.name}: when`))
    return { kind: 'skipped' };
  const reply = await context.connection.perform(step.request, scope, options);
  if (reply.kind === 'failed') return { kind: 'failed', failure: reply };
  const after: Scope = { ...scope, response: reply.response as JsonObject };
  const meaning = meaningOf(context, step, after);
  const expected =
    meaning === undefined &&
    (step.expect === undefined ? reply.ok : holds(context, step.expect, after, `${step.name}: expect`));
  if (!expected || reply.unreadable !== undefined) {
    const said = describe(context, reply, step.reason, after);
    const reason = meaning === undefined ? unmet(step, reply, expected) + said : said;
    return { kind: 'unexpected', reply, reason, meaning };
  }
  return { kind: 'done', reply, ...capture(context, step, after) };
}

const meanings = ['retry', 'refused', 'missing'] as const;

function meaningOf(context: StepContext, step: Step, after: Scope): Meaning {
  return meanings.find((name) => {
    const condition = step.meanings[name];
    return condition !== undefined && holds(context, condition, after, `${step.name}: ${name}`);
  });
}

/** Says why a reply that looks well is not taken: otherwise nobody would look at the adapter's own condition. */
function unmet(step: Step, reply: Reply, expected: boolean): string {
  return expected || !reply.ok || step.expect === undefined
    ? ''
    : `expect (${step.expect.source}) does not hold for `;
}

/** Evaluates captures in order; each may read those before it. */
function capture(
  context: StepContext,
  { name: step, capture: captures }: Step,
  scope: Scope,
): { captured: JsonObject; missing: string[] } {
  const captured: JsonObject = {};
  const missing: string[] = [];
  for (const { name, value, optional } of captures) {
    const job = { ...(scope.job as JsonObject), ...captured };
    const found = evaluate(context, value, { ...scope, job }, `${step}: capture ${name}`);
    if (found === undefined || found === null) {
      if (!optional) missing.push(name);
    } else if (Buffer.byteLength(stringifyExact(found)) > captureLimit) {
      context.fault(`${step}: capture ${name}`, new EvaluationFault(`is larger than ${captureLimit} bytes`));
      missing.push(name);
    } else captured[name] = found;
  }
  return { captured, missing };
}

/** A condition; one that can't be evaluated does not hold. */
export function holds(context: StepContext, condition: Expression, scope: Scope, what: string): boolean {
  return evaluate(context, condition, scope, what) === true;
}

/** A value, or undefined when the expression can't be evaluated over `scope`. */
export function evaluate(
  context: StepContext,
  expression: Expression,
  scope: Scope,
  what: string,
): Json | undefined {
  return attempt(context, what, () => expression.evaluate(scope));
}

/** Runs an evaluation; one that fails on its data is reported and gives undefined. */
export function attempt<T>(context: StepContext, what: string, run: () => T): T | undefined {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof EvaluationFault)) throw error;
    context.fault(what, error);
    return undefined;
  }
}

/** What an unwanted reply says, for people: status and the reason in its body, cleaned and without secrets. */
function describe(
  context: StepContext,
  reply: Reply,
  reasonIn: Expression | undefined,
  scope: Scope,
): string {
  const { status, body, headers } = reply.response;
  const head = status === undefined ? 'the reply' : `HTTP ${String(status)}`;
  if (reply.unreadable !== undefined) return shown(context, `${head}: ${reply.unreadable}`, excerptLimit);
  const location =
    typeof status === 'bigint' && status >= 300n && status < 400n ? headers?.location : undefined;
  const redirected =
    typeof location === 'string'
      ? ` to ${location.split('?')[0]} (not followed; see redirects of the step)`
      : '';
  const said = reasonIn && saidIn(reasonIn, scope);
  const text =
    said !== undefined
      ? `: ${said}`
      : body === null || body === ''
        ? ''
        : `: ${typeof body === 'string' ? body : stringifyExact(body)}`;
  return shown(context, `${head}${redirected}${text}`, excerptLimit);
}

/** Replies differ, so a reason that isn't there is no fault of the adapter. */
function saidIn(reason: Expression, scope: Scope): string | undefined {
  try {
    const said = reason.evaluate(scope);
    if (said === undefined || said === null || said === '') return undefined;
    return typeof said === 'string' ? said : stringifyExact(said);
  } catch (error) {
    if (error instanceof EvaluationFault) return undefined;
    throw error;
  }
}

/** Upstream text as one line that may be shown: clean, without secrets, of at most `limit` code points. */
export function shown(context: StepContext, text: string, limit = messageLimit): string {
  return cleanLine(text, limit, context.redact);
}

/** The HTTP status as a number; 0 for a driver that has none. */
export function statusOf(reply: Reply): number {
  return Number(reply.response.status ?? 0);
}

/** Why a step did not succeed, for people. */
export function reasonOf(
  context: StepContext,
  run: Extract<StepRun, { kind: 'failed' | 'unexpected' }>,
): string {
  return run.kind === 'failed' ? shown(context, run.failure.reason) : run.reason;
}

/** What a request that did not succeed means for what was to be sent: try again later, or the upstream's no. */
export function unsent(
  context: StepContext,
  run: Extract<StepRun, { kind: 'failed' | 'unexpected' }>,
): { kind: 'refused'; reason: string } | { kind: 'later'; reason: string; retryAfterMs: number | undefined } {
  const reason = reasonOf(context, run);
  if (run.kind === 'failed') {
    return run.failure.code === 'invalid_request'
      ? { kind: 'refused', reason }
      : { kind: 'later', reason, retryAfterMs: undefined };
  }
  const { reply } = run;
  return isPassing(run) || refusesCredential(reply)
    ? { kind: 'later', reason, retryAfterMs: reply.retryAfterMs }
    : { kind: 'refused', reason };
}

/** 401 or 403: somebody has to mend the credential, and the same request may succeed then. */
export function refusesCredential(reply: Reply): boolean {
  const status = statusOf(reply);
  return status === 401 || status === 403;
}

/** A reply that says nothing about the job: the upstream is overloaded or broken for the moment. */
export function isPassing({ reply, meaning }: { reply: Reply; meaning: Meaning }): boolean {
  if (meaning !== undefined) return meaning === 'retry';
  const status = statusOf(reply);
  return reply.limited === true || status === 408 || status === 425 || status === 429 || status >= 500;
}
