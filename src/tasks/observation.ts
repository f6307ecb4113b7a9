// Everything that can be observed of a task: what its upstream says, what its caller wants, what time brings.

import type { AnswerOutcome, CancelOutcome, JobResult, PollObservation } from '../drivers/driver.ts';
import type { JsonObject } from '../exact-json.ts';
import type { GivenAnswer } from './task.ts';

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
  /** The job has ended and its result can't be read for now; `fallback` is the answer once nobody tries any more. */
  | { kind: 'result_later'; reason: string; retryAfterMs: number | undefined; fallback: JobResult }
  /** Only after the end. */
  | { kind: 'cleaned' }
  | { kind: 'cleanup_later'; reason: string; retryAfterMs: number | undefined }
  | { kind: 'cancel_requested' }
  /** `afterMs`: 0, or the escalation that was sent. */
  | { kind: 'cancel_outcome'; outcome: CancelOutcome; afterMs: number }
  | { kind: 'answers'; answers: readonly GivenAnswer[] }
  | { kind: 'answer_outcome'; key: string; outcome: AnswerOutcome }
  /** The adapter's text or driver can't be loaded, so the job can't be followed for now. */
  | { kind: 'adapter_missing'; reason: string }
  | { kind: 'deadline' };
