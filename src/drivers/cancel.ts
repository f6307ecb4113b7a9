// Asking the upstream to cancel a job: every cancel step whose `when` holds.

import type { Tool } from '../config/adapter.ts';
import type { CancelOutcome, JobView, Poll } from './driver.ts';
import { isPassing, runStep, type StepContext, scopeOf, shown, statusOf } from './steps.ts';

export async function cancelJob(
  context: StepContext,
  tool: Tool,
  view: JobView,
  poll: Poll,
): Promise<CancelOutcome> {
  let sent = false;
  let { job } = view;
  for (const step of tool.cancel) {
    const run = await runStep(context, step, scopeOf(context, { ...view, job }, { response: poll.reply }));
    if (run.kind === 'failed') {
      const reason = shown(context, run.failure.reason);
      return run.failure.code === 'invalid_request'
        ? { kind: 'refused', reason }
        : { kind: 'later', reason, retryAfterMs: undefined };
    }
    if (run.kind === 'unexpected') {
      const status = statusOf(run.reply);
      if (isPassing(run) || status === 401 || status === 403) {
        return { kind: 'later', reason: run.reason, retryAfterMs: run.reply.retryAfterMs };
      }
      return { kind: 'refused', reason: run.reason };
    }
    if (run.kind === 'skipped') continue;
    sent = true;
    job = { ...job, ...run.captured };
  }
  return sent ? { kind: 'sent' } : { kind: 'inapplicable' };
}
