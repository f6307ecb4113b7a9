// Asking the upstream to cancel a job: every cancel step whose `when` holds, and later those of its escalation.

import type { Tool } from '../config/adapter.ts';
import type { JsonObject } from '../exact-json.ts';
import type { CancelOutcome, JobView, Poll } from './driver.ts';
import { runListedStep, withFetched } from './listed-steps.ts';
import { isPassing, type StepContext, scopeOf, shown, statusOf } from './steps.ts';

export async function cancelJob(
  context: StepContext,
  tool: Tool,
  view: JobView,
  poll: Poll,
  afterMs: number,
): Promise<CancelOutcome> {
  let sent = false;
  let { job } = view;
  let fetched: JsonObject = {};
  for (const step of tool.cancel.filter((each) => each.afterMs === afterMs)) {
    const scope = scopeOf(context, { ...view, job }, { response: poll.reply, fetched });
    const run = await runListedStep(context, step, scope);
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
    fetched = withFetched(fetched, step, run);
    // A step that only reads finds out what to cancel.
    if (!step.safe && (run.kind === 'done' || run.replies.length > 0)) sent = true;
    if (run.kind === 'done') job = { ...job, ...run.captured };
  }
  return sent ? { kind: 'sent' } : { kind: 'inapplicable' };
}
