// The driver port. A driver speaks one kind of upstream (HTTP, BullMQ); tasks see it as an `Upstream`.

import type { Phase, Timing } from '../config/adapter.ts';
import type { DriverFormat } from '../config/driver-format.ts';
import type { Scope } from '../config/expression.ts';
import type { Json, JsonObject } from '../exact-json.ts';
import type { Budget } from './budget.ts';

// ---- what a driver implements ------------------------------------------------------------------

export interface Driver<UpstreamConfig = unknown, StepConfig = unknown> {
  format: DriverFormat<UpstreamConfig, StepConfig>;
  /** What is wrong with the upstream under the values its variables have now, as a sentence; asked at start. */
  verify(upstream: UpstreamConfig, values: { env: JsonObject; secrets: JsonObject }): string | undefined;
  /** Opens no connection yet; cheap. */
  connect(upstream: UpstreamConfig, context: ConnectContext): Connection<StepConfig>;
}

export interface ConnectContext {
  /** Values of `env` and `secrets`, resolved anew at each call. @throws TaskferryError `secret_missing` */
  variables(): { env: JsonObject; secrets: JsonObject };
  /** Reads NAME_FILE secrets again; true when one changed. Called once after a 401. */
  refreshSecrets(): boolean;
  /** Replaces known secrets in excerpts of replies, before these are cut. Default: none are known. */
  redact?(text: string): string;
  /** What may be asked of the upstream; every exchange waits for a place in it. Default: no limits. */
  budget?: Budget;
  /** Told of every exchange, tries that are repeated too: how long it took once it had its place in the budget. */
  exchanged?(result: 'reply' | 'failed', ms: number): void;
}

export interface Connection<StepConfig = unknown> {
  /** Performs one step's exchange. Never throws for what the network or the upstream does. */
  perform(step: StepConfig, scope: Scope, options?: PerformOptions): Promise<StepReply>;
  /** Credentials that the driver made or was given beside the secrets: what must never be shown. Default: none. */
  secrets?(): Iterable<string>;
  close(): Promise<void>;
}

export interface PerformOptions {
  /** Ends the exchange; gives `failed` with code `aborted`. */
  signal?: AbortSignal;
  /** Replaces the upstream's `maxBytes` (results). */
  maxBytes?: number;
  /** A caller waits for the answer: its calls take turns with those of tasks that are followed. Default false. */
  forCaller?: boolean;
  /** Headers that taskferry itself adds, such as the idempotency key. */
  headers?: { [name: string]: string };
}

/**
 * `response` as expressions see it. HTTP: `status`, `headers` (lower-case names), `body`, `cookies`, `url`.
 * `truncated`: a part of the body is missing. `bytes`: how many there are, if that is known.
 */
export type Response = {
  status?: Json;
  headers?: JsonObject;
  body: Json;
  cookies?: JsonObject;
  url?: Json;
  truncated?: boolean;
  bytes?: Json;
};

export type StepReply =
  | {
      kind: 'reply';
      response: Response;
      /** The default judgement when the step has no `expect` (HTTP: a 2xx). */
      ok: boolean;
      /** Set when the body is not what `read` expects; `response.body` is then null. */
      unreadable?: string;
      /** When the upstream asked to come back later, on any status. Milliseconds from now. */
      retryAfterMs?: number;
      /** The reply says "too many requests" (429, or a 403 that is a rate limit). */
      limited?: boolean;
    }
  | {
      kind: 'failed';
      code: 'invalid_request' | 'credential' | 'connect' | 'timeout' | 'reset' | 'too_large' | 'aborted';
      /** False when it is certain that the upstream never got the request. */
      sent: boolean;
      /** For people: what happened, without secrets. */
      reason: string;
    };

// ---- what tasks see ----------------------------------------------------------------------------

export type { Phase };

/** One tool of one adapter text, ready to create and follow jobs. */
export interface Upstream {
  readonly plan: ToolPlan;
  /** Runs create step `index`. */
  createStep(view: JobView, index: number, signal?: AbortSignal): Promise<CreateOutcome>;
  /** Looks for the job that create step `index` may have made. Only if `recovery.find` is set. */
  find(view: JobView, index: number, signal?: AbortSignal): Promise<FindOutcome>;
  poll(view: JobView): Promise<Poll>;
  /**
   * Turns an ended job into its result. `poll` is the one that saw the end; without it the status is read again,
   * as the mapping may read the last reply.
   */
  result(view: JobView, verdict: 'succeeded' | 'failed', poll?: Poll): Promise<ResultOutcome>;
  /**
   * `poll` is the one just made: which request cancels a job often depends on where it stands. `afterMs`: 0, or the
   * escalation that is due.
   */
  cancel(view: JobView, poll: Poll, afterMs: number): Promise<CancelOutcome>;
  /** Removes what an ended job has left. `outcome`: succeeded, failed, cancelled, errored, or refused. */
  cleanUp(view: JobView, outcome: string): Promise<CleanupOutcome>;
  answer(view: JobView, answer: Answer, poll: Poll): Promise<AnswerOutcome>;
  /** A `call:` tool: one synchronous exchange, no job, no task. */
  call(view: JobView, signal?: AbortSignal): Promise<JobResult>;
}

/** What the task life needs to know of a tool, whatever drives it. */
export interface ToolPlan {
  adapter: string;
  digest: string;
  tool: string;
  createSteps: readonly { recovery: Recovery }[];
  /** Status stages in order. `withinMs`: a job that stays in the stage for longer is lost. */
  stages: readonly { name: string; withinMs: number | undefined }[];
  timing: Timing;
  canCancel: boolean;
  /** There is something to be done after the end. */
  cleansUp: boolean;
  /** How long after a cancel was sent further steps are, while the job goes on. Milliseconds, ascending. */
  escalations: readonly number[];
}

/** What may be done about a create whose outcome is unknown. */
export interface Recovery {
  /** The same request may be sent again. */
  repeat: boolean;
  /** … until this long after the first; undefined: for good. */
  repeatForMs: number | undefined;
  /** A look-up by `task.key` exists; a job must show up in it within this time after the send. */
  find: { withinMs: number } | undefined;
}

/** What the driver may know of a task. Never its id: that may act as a bearer token. */
export interface JobView {
  key: string;
  /** When the task was made, before the upstream heard of it. Milliseconds since the epoch. */
  createdAt: number;
  args: JsonObject;
  confirm: JsonObject;
  job: JsonObject;
  /** Index of the status stage to read. */
  statusStage: number;
}

export type CreateOutcome =
  /** `job`: the new captures of this step. */
  | { kind: 'done'; job: JsonObject }
  /**
   * A clear no: this request created nothing. `message` is for the caller. `judged`: the upstream refused the request
   * itself; false when it was never reached or refused the credential, so that another try may fare better.
   */
  | { kind: 'refused'; message: string; judged: boolean }
  /** Not created, and worth another try (a rate limit). */
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined }
  /** A job may or may not exist. */
  | { kind: 'doubtful'; reason: string; retryAfterMs: number | undefined };

export type FindOutcome =
  | { kind: 'found'; job: JsonObject }
  | { kind: 'none' }
  /** The look-up can't be made, or the upstream refuses it: nobody can tell, and another try would say no more. */
  | { kind: 'ambiguous'; reason: string }
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined };

/** What one poll says about a job. `reply` is what the last exchange of the poll gave. */
export interface Poll {
  observation: PollObservation;
  reply: Response | undefined;
}

export type PollObservation =
  | {
      kind: 'status';
      phase: Phase;
      /** Set when no rule matched: the status word nobody knows. `phase` is then `working`. */
      unknownWord?: string;
      message?: string;
      /** New captures, merged into `job`. */
      job: JsonObject;
      statusStage: number;
      /** The questions whose `when` holds; only with phase `input_required`. */
      questions: readonly Question[];
      retryAfterMs?: number;
    }
  /** Retried until the task's timeout: network, 408, 425, 429, 5xx, an unreadable body. */
  | { kind: 'unreachable'; reason: string; retryAfterMs?: number }
  /** 401, 403, or a missing variable: nothing can be read until somebody mends the credential. */
  | { kind: 'credential'; reason: string; retryAfterMs?: number }
  /** 404. */
  | { kind: 'missing'; reason: string }
  /** 410. */
  | { kind: 'gone'; reason: string }
  /** The reply carries no status where `of` looks. */
  | { kind: 'unreadable'; reason: string }
  /** Any other reply that fails `expect`. */
  | { kind: 'rejected'; reason: string };

export interface Question {
  /** What its keys are made of: the key of `ask`, with the item's id where there is one question for each item. */
  stem: string;
  /** The key of `ask`; undefined: the stem. */
  ask: string | undefined;
  /** The item it is asked for. */
  item: Json | undefined;
  message: string;
  schema: JsonObject;
  /** Changes when the question's own captures change: then it is a new question. */
  fingerprint: string;
}

export type Verdict = 'succeeded' | 'failed' | 'cancelled' | 'errored';

export type ResultOutcome =
  | { kind: 'ready'; result: JobResult }
  /** The fetch failed and may be tried again; `fallback` is what to answer once nobody tries any more. */
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined; fallback: JobResult };

export interface JobResult {
  isError: boolean;
  text: string;
  structured: Json | undefined;
  links: readonly { uri: string; name: string; mimeType?: string; description?: string }[];
}

/** The result of a job whose end is known, though not what it gave. `verdict`: what is said of the end. */
export function withoutResult(isError: boolean, why: string, verdict?: string): JobResult {
  const text = `${verdict ?? verdictText(isError)}\nIts result could not be read: ${why}`;
  return { isError, text, structured: undefined, links: [] };
}

/** What is said of a job's end when its upstream says nothing. */
export function verdictText(isError: boolean): string {
  return isError ? 'The job failed.' : 'The job succeeded.';
}

export type CancelOutcome =
  | { kind: 'sent' }
  /** The upstream said no. Followed to its end. */
  | { kind: 'refused'; reason: string }
  /** No request of the adapter is for a job as it stands now; one may be once it has moved on. Nothing was sent. */
  | { kind: 'inapplicable' }
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined };

export type CleanupOutcome =
  | { kind: 'done' }
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined };

export interface Answer {
  stem: string;
  ask: string | undefined;
  item: Json | undefined;
  action: 'accept' | 'decline' | 'cancel';
  content: JsonObject;
}

export type AnswerOutcome =
  | { kind: 'delivered' }
  /** A decline or cancel for which the adapter names no step: nothing was sent. */
  | { kind: 'unhandled' }
  | { kind: 'refused'; reason: string }
  | { kind: 'later'; reason: string; retryAfterMs: number | undefined };
