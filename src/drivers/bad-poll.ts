// What a poll that gave no status says: try again, mend the credential, or the job is gone.

import type { PollObservation } from './driver.ts';
import { isPassing, refusesCredential, type StepContext, type StepRun, shown, statusOf } from './steps.ts';

/** A poll error is never an outcome: only 404 and 410 of the upstream itself say something about the job. */
export function badPoll(
  context: StepContext,
  run: Extract<StepRun, { kind: 'failed' | 'unexpected' }>,
): PollObservation {
  if (run.kind === 'failed') {
    const reason = shown(context, run.failure.reason);
    if (run.failure.code === 'credential') return { kind: 'credential', reason };
    return run.failure.code === 'invalid_request'
      ? { kind: 'rejected', reason }
      : { kind: 'unreachable', reason };
  }
  const { reply, reason, meaning } = run;
  const status = statusOf(reply);
  const retry = reply.retryAfterMs === undefined ? {} : { retryAfterMs: reply.retryAfterMs };
  if (isPassing(run)) return { kind: 'unreachable', reason, ...retry };
  if (meaning === 'missing') return { kind: 'missing', reason };
  if (refusesCredential(reply))
    return { kind: 'credential', reason: `The upstream refuses the credential (${reason})`, ...retry };
  // A page where JSON should be comes from something in between, not from the upstream itself.
  if (reply.unreadable !== undefined) return { kind: 'unreachable', reason, ...retry };
  if (status === 404) return { kind: 'missing', reason };
  if (status === 410) return { kind: 'gone', reason };
  context.pollRejected(status, reason);
  return { kind: 'rejected', reason };
}

/** The same of a request beside the status: a job whose status was read a moment ago is not lost by it. */
export function besideStatus(observation: PollObservation, what: string): PollObservation {
  if (observation.kind !== 'missing' && observation.kind !== 'gone') return observation;
  return { kind: 'rejected', reason: `${what} can't be read: ${observation.reason}` };
}
