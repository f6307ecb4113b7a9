// The compiled adapter: what the loader makes of one YAML file and what the rest of taskferry reads.
// Words are those of the file (docs/adapters.md); everything here is plain, immutable data plus expressions.

import type { Json, JsonObject } from '../exact-json.ts';
import type { Expression } from './expression.ts';
import type { TextTemplate, ValueTemplate } from './template.ts';

/** Neutral states of an upstream job. `errored`: the call itself could not be carried out. */
export const phases = ['working', 'input_required', 'succeeded', 'failed', 'cancelled', 'errored'] as const;
export type Phase = (typeof phases)[number];

/** The order in which state rules are tried, whatever their order in the file. */
export const phaseOrder: readonly Phase[] = [
  'cancelled',
  'errored',
  'failed',
  'succeeded',
  'input_required',
  'working',
];

export interface Adapter {
  name: string;
  description: string | undefined;
  file: string;
  /** The file's text, stored once per digest so that running tasks survive edits of the file. */
  text: string;
  /** SHA-256 of `text`, lower-case hex. */
  digest: string;
  env: readonly EnvVariable[];
  secrets: readonly string[];
  upstream: CompiledUpstream;
  limits: Limits;
  tools: readonly Tool[];
}

/** A variable of `env:`; read as NAME or from the file named by NAME_FILE. */
export interface EnvVariable {
  name: string;
  default: string | undefined;
}

export interface Limits {
  /** Upstream calls under way at once, per adapter. Default 8. */
  concurrency: number;
  /** At most `calls` upstream calls per `perMs`. Default: no limit. */
  rate: { calls: number; perMs: number } | undefined;
}

/** `config` is whatever the driver's format compiled; only that driver reads it. */
export interface CompiledUpstream {
  driver: string;
  config: unknown;
}

export interface Tool {
  /** The key in the file; a stored task names its tool by it. */
  key: string;
  title: string | undefined;
  description: string;
  annotations: JsonObject | undefined;
  /** JSON Schema 2020-12, type object. */
  input: JsonObject;
  /** JSON Schema of `structuredContent`. */
  output: JsonObject | undefined;
  /** `job`: create, then follow. `call`: one synchronous request, never a task. */
  kind: 'job' | 'call';
  confirm: readonly ConfirmQuestion[];
  /** kind `job`: at least one. kind `call`: the steps of `call:`. */
  create: readonly CreateStep[];
  /** kind `job`: at least one stage. kind `call`: empty. */
  status: readonly StatusStage[];
  cancel: readonly CancelStep[];
  /** Made after the end, however it came; they never change the outcome. */
  cleanup: readonly Step[];
  ask: readonly AskQuestion[];
  result: ResultMapping;
  failure: ResultMapping;
  timing: Timing;
  /** What a client that doesn't speak tasks gets. Default `wait`. */
  withoutTasks: { mode: 'wait'; waitMs: number } | { mode: 'reject' };
  /** What a client's disconnect does to a job that was already created. Default `keep`. */
  onDisconnect: 'keep' | 'cancel';
}

/** All in milliseconds. */
export interface Timing {
  /** First and shortest poll interval. Default 5s. */
  every: number;
  /** Longest poll interval. Default 1m. */
  max: number;
  /** A task that runs longer ends as `errored` timed_out. Default 24h. */
  timeout: number;
  /** How long a task is kept beyond `timeout`; the TTL is `timeout + keep`. Default 24h. */
  keep: number;
  /** How long a call waits for a quick job before it answers with a task. Default 0, at most 5s. */
  settle: number;
  /** What a time-out does upstream. Default `leave`. */
  onTimeout: 'leave' | 'cancel';
}

/** One upstream exchange. `request` is compiled by the driver's format. */
export interface Step {
  /** Name for logs and messages: `step:` in the file, else its position. */
  name: string;
  when: Expression | undefined;
  /** Gives a list: the request is made once for each `item` of it. */
  each: Expression | undefined;
  request: unknown;
  /** The request only reads. */
  safe: boolean;
  /** The reply can be done without: when it can't be had, the step counts as left out. */
  optional: boolean;
  /** Undefined: the driver's default (HTTP: any 2xx). */
  expect: Expression | undefined;
  /** What replies mean whatever their status; looked at before `expect`. */
  meanings: ReplyMeanings;
  /** What an unwanted reply says, for people. Undefined: the start of its body. */
  reason: Expression | undefined;
  /** In file order; later ones may read earlier ones as `job.<name>`. */
  capture: readonly Capture[];
}

/** Conditions on a reply, tried in this order. Undefined: what HTTP says of the status. */
export interface ReplyMeanings {
  /** Says nothing for now: try again later, as after a 503. */
  retry: Expression | undefined;
  /** A certain no: nothing was created. */
  refused: Expression | undefined;
  /** The upstream doesn't know the job, as a 404 says. */
  missing: Expression | undefined;
}

export interface Capture {
  name: string;
  value: Expression;
  /** It may have no value; written `name?` in the file. */
  optional: boolean;
}

export interface CreateStep extends Step {
  /** The upstream recognises a repeated request. `header`: taskferry sends `task.key` in it. */
  idempotency: { header: string | undefined; ttlMs: number | undefined } | undefined;
  /** Looks the job up by `task.key` when it is unknown whether the request created one. */
  find: (Step & { withinMs: number }) | undefined;
  /** Repeating the request does no harm (an upload, a reservation that expires). */
  repeatable: boolean;
}

export interface CancelStep extends Step {
  /** Sent when the job still goes on that long after the cancel was first sent. Milliseconds; 0: at once. */
  afterMs: number;
}

export interface StatusStage extends Step {
  /** Further requests of one look, read as `fetched.<step>`. */
  fetch: readonly Step[];
  /** It is left when all captures that must have a value have one; false: there is none, so it ends with the job. */
  endsByCapture: boolean;
  /** A job that stays in the stage for longer is lost. Milliseconds; undefined: until the time-out. */
  withinMs: number | undefined;
  state: StateRules;
  message: TextTemplate | undefined;
}

export interface StateRules {
  /** The upstream's status word, compared with `words`. */
  of: Expression | undefined;
  /** In the order they are tried: {@link phaseOrder} for the map form, file order for the list form. */
  rules: readonly StateRule[];
}

export type StateRule =
  | { phase: Phase; words: readonly Json[] }
  | { phase: Phase; when: Expression }
  | { phase: Phase; always: boolean };

export interface ConfirmQuestion {
  key: string;
  when: Expression | undefined;
  message: TextTemplate;
  /** Flat JSON Schema (string, number, integer, boolean, enum), as elicitation allows. */
  schema: JsonObject;
}

export interface AskQuestion {
  /** Stem: the runtime makes `stem-1`, `stem-2` …, never reused in one task's life. */
  key: string;
  fetch: Step | undefined;
  /** One question for each item of a list. `id` tells items apart from look to look. */
  each: { list: Expression; id: Expression } | undefined;
  when: Expression | undefined;
  message: TextTemplate;
  schema: QuestionSchema;
  /** Every step whose `when` holds is sent. */
  onAccept: readonly Step[];
  onDecline: readonly Step[];
  onCancel: readonly Step[];
}

/** A flat JSON Schema, or one that is made from what the upstream says. */
export type QuestionSchema =
  | { kind: 'fixed'; schema: JsonObject }
  | { kind: 'made'; template: ValueTemplate };

export interface ResultMapping {
  fetch: readonly Step[];
  structured: ValueTemplate | undefined;
  text: TextTemplate | undefined;
  links: readonly LinkTemplate[];
  /** Most bytes of a fetched body and of the rendered result. Default 256 KiB, at most 16 MiB. */
  maxBytes: number;
}

export interface LinkTemplate {
  uri: TextTemplate;
  name: TextTemplate;
  mimeType: string | undefined;
  description: TextTemplate | undefined;
}
