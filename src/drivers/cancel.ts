// Asking the upstream to cancel a job: every cancel step whose `when` holds, and later those of its escalation.

import type { Tool } from '../config/adapter.ts';
import type { JsonObject } from '../exact-json.ts';
import type { CancelOutcome, JobView, Poll } from './driver.ts';
import { runListedStep, withFetched } from './listed-steps.ts';
import { type StepContext, scopeOf, unsent } from './steps.ts';

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
    if (run.kind === 'failed' || run.kind === 'unexpected') return unsent(context, run);
    if (run.kind === 'skipped') continue;
    fetched = withFetched(fetched, step, run);
    // A step that only reads finds out what to cancel.
    if (!step.safe && (run.kind === 'done' || run.replies.length > 0)) sent = true;
    if (run.kind === 'done') job = { ...job, ...run.captured };
  }
  return sent ? { kind: 'sent' } : { kind: 'inapplicable' };
}
