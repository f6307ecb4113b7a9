// The task record: taskferry's durable memory of one job for one caller, and the states it moves through.
//
//   creating ──linked──▶ following ──verdict──▶ finishing ──result, or no more tries──▶ ended
//      │                    │  ▲                    │
//      │ refused: removed   │  └ poll, answer,      └ result fetch tried again
//      │ doubt without end, │    cancel sent
//      │ late refusal,      │
//      │ deadline           │ cancelled, errored, lost, unreadable, timed out
//      └──────▶ ended ◀─────┘
//
// creating   inserted before the upstream hears anything. Left by the last create step's captures (linked),
//            by a clear refusal (the record is removed if its caller still waits, else it ends, errored), by a
//            doubt that can't be resolved, or by the deadline.
// following  polled until a state rule gives a verdict. `phase` is working or input_required. Succeeded and failed
//            lead to finishing, cancelled and errored straight to the end.
// finishing  the verdict is fixed and stored: whatever the upstream says later changes nothing. The result is
//            being fetched; clients still see `working`. After five tries, or at the deadline, the task ends with
//            its verdict and a text that says why the result is missing.
// ended      terminal. `outcome` holds the rendered result; nothing but the purge touches the record again.
//
// Every change is one compare-and-set on `version`, computed by the pure functions in reduce.ts and moves/.

import type { Phase, Verdict } from '../drivers/driver.ts';
import type { Json, JsonObject } from '../exact-json.ts';

/** `caller` is part of the key: a foreign task looks exactly like an unknown one. */
export interface TaskRef {
  caller: string;
  id: string;
}

/** The reference as one text, for maps and sets. */
export function refKey({ caller, id }: TaskRef): string {
  return `${id} ${caller}`;
}

export type Stage = 'creating' | 'following' | 'finishing' | 'ended';

export interface Task extends TaskRef {
  /** What upstreams may see: idempotency key, job name, correlation value. */
  key: string;
  /** Name the adapter is served under; upstream budgets and the schedule go by it. */
  adapter: string;
  /** Digest of the adapter text that this task follows to its end. */
  digest: string;
  tool: string;
  args: JsonObject;
  confirm: JsonObject;
  /** Unique per caller, adapter and tool: a repeated start gives the same task. */
  startKey: string | undefined;
  /** SHA-256 of the arguments, to refuse the same startKey with other arguments. */
  argsHash: string;

  stage: Stage;
  phase: Phase;
  /** What the client reads as statusMessage: `progress` plus what taskferry has to add. */
  message: string | undefined;
  /**
   * What is said of the job itself: the upstream's own words (the adapter's `message`), until the next poll those of
   * a refused cancel, and at the end taskferry's word on how it ended unless there is a result.
   */
  progress: string | undefined;
  /** Captures of the create and status steps. */
  job: JsonObject;

  create: CreateProgress;
  statusStage: number;
  /** When it was first seen in that stage. Undefined: in the first one, since the link. */
  stageSince: number | undefined;
  verdict: Verdict | undefined;
  questions: readonly OpenQuestion[];
  /** Per question stem, so that keys are never reused. */
  asked: { readonly [stem: string]: AskedStem };
  /** Accepted and stored, not yet delivered upstream. */
  answers: readonly PendingAnswer[];
  cancel: CancelProgress | undefined;
  /** Set once ended, while what the job has left upstream is still to be removed. */
  cleanup: { tries: number } | undefined;
  trouble: Trouble;
  /** What the terminal state was, for metrics and logs; the client-visible text is `outcome`. */
  ending: Ending | undefined;

  /** Milliseconds since the epoch. */
  createdAt: number;
  linkedAt: number | undefined;
  /** Moves only when status, message, questions or result change. */
  updatedAt: number;
  /** `timing.timeout` after creation: the task ends then, whatever the upstream says. */
  deadline: number;
  /** Creation + timeout + keep: the record is purged then and not before. */
  expiresAt: number;

  /** Compare-and-set counter, from 1. */
  version: number;
}

export interface CreateProgress {
  /** The create step to run next; its captures are not stored yet. */
  step: number;
  /**
   * When the request of that step may have been sent, at the earliest, by wall clock. Set anew when a look-up has
   * proved that it made nothing.
   */
  sentAt: number;
  /** Set while it is unknown whether the job exists. */
  doubt: { since: number; reason: string; looks: number } | undefined;
}

export interface OpenQuestion {
  key: string;
  stem: string;
  /** The key of `ask`; undefined: the stem. */
  ask: string | undefined;
  /** The item of `each` it is asked for. */
  item: Json | undefined;
  message: string;
  schema: JsonObject;
  fingerprint: string;
}

export interface AskedStem {
  /** Number of the last key made from the stem. */
  count: number;
  /** When the last answer was delivered, and to which fingerprint. */
  deliveredAt: number | undefined;
  fingerprint: string | undefined;
  /** Answers that the upstream refused in a row, and why it refused the last. */
  refusals: number;
  refusal: string | undefined;
  /** Declined or cancelled without a handler, or refused too often: quiet until the state changes. */
  quiet: boolean;
}

/** An answer as the caller gave it, by the key of its question. */
export interface GivenAnswer {
  key: string;
  action: 'accept' | 'decline' | 'cancel';
  content: JsonObject;
}

export interface PendingAnswer extends GivenAnswer, Pick<OpenQuestion, 'stem' | 'ask' | 'item'> {
  fingerprint: string;
}

export interface CancelProgress {
  requestedAt: number;
  /** requested: not sent yet. sent: the upstream took it. refused, unsupported: followed to the end. */
  state: 'requested' | 'sent' | 'refused' | 'unsupported';
  /** When it was first sent. */
  sentAt: number | undefined;
  /** The escalation that was sent last, by its `after` in milliseconds. */
  escalated: number | undefined;
}

/** What stands between taskferry and the upstream's status; empty while polls go well. */
export interface Trouble {
  kind:
    | 'unreachable'
    | 'credential'
    | 'adapter_missing'
    | 'missing'
    | 'unreadable'
    | 'rejected'
    | 'unknown_status'
    | undefined;
  since: number | undefined;
  reason: string | undefined;
  /** Polls in a row that found no job (404), after the grace period. */
  missing: number;
  /** Polls in a row that found no status in the reply. */
  unreadable: number;
  /** Tries to fetch the result. */
  resultTries: number;
}

/** Stable words, also the values of the `outcome` label in metrics. */
export type Ending =
  | 'succeeded'
  | 'failed'
  | 'cancelled'
  | 'upstream_error'
  | 'job_lost'
  | 'outcome_unknown'
  | 'status_unreadable'
  | 'timed_out';

/** When to look at a task next. Kept apart from the record: it changes with every poll. */
export interface Schedule {
  /** Wall time. */
  dueAt: number;
  /** The current poll interval, which grows from `every` to `max`. */
  intervalMs: number;
}
