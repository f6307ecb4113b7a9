// Removing what a job has left upstream (`cleanup:`), after its end. Nothing here changes how it ended.

import type { Tool } from '../config/adapter.ts';
import type { JsonObject } from '../exact-json.ts';
import type { CleanupOutcome, JobView } from './driver.ts';
import { runListedStep, withFetched } from './listed-steps.ts';
import { reasonOf, type StepContext, scopeOf, statusOf } from './steps.ts';

/** Makes every step, also after one that failed. @param outcome how the job ended, as expressions read it. */
export async function cleanUp(
  context: StepContext,
  tool: Tool,
  view: JobView,
  outcome: string,
): Promise<CleanupOutcome> {
  let fetched: JsonObject = {};
  let failure: CleanupOutcome | undefined;
  for (const step of tool.cleanup) {
    const run = await runListedStep(context, step, { ...scopeOf(context, view, { fetched }), outcome });
    fetched = withFetched(fetched, step, run);
    if (run.kind === 'failed' || (run.kind === 'unexpected' && !isGone(statusOf(run.reply)))) {
      failure ??= {
        kind: 'later',
        reason: `${step.name}: ${reasonOf(context, run)}`,
        retryAfterMs: run.kind === 'failed' ? undefined : run.reply.retryAfterMs,
      };
    }
  }
  return failure ?? { kind: 'done' };
}

/** What is to be removed is gone already. */
function isGone(status: number): boolean {
  return status === 404 || status === 410;
}
