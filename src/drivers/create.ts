// Create steps: which replies mean a job, which a clear no, and which leave a doubt.

import type { CreateStep, Tool } from '../config/adapter.ts';
import { cleanLine, excerptLimit } from './clean-text.ts';
import type { CreateOutcome, FindOutcome, JobView } from './driver.ts';
import { isPassing, runStep, type StepContext, scopeOf, statusOf } from './steps.ts';

export async function runCreateStep(
  context: StepContext,
  tool: Tool,
  view: JobView,
  index: number,
  signal?: AbortSignal,
): Promise<CreateOutcome> {
  const step = stepAt(tool, index);
  const header = step.idempotency?.header;
  const run = await runStep(context, step, scopeOf(context, view), {
    ...(signal && { signal }),
    ...(header !== undefined && { headers: { [header]: view.key } }),
  });
  switch (run.kind) {
    case 'skipped':
      return { kind: 'done', job: {} };
    case 'failed': {
      const reason = line(context, run.failure.reason);
      return run.failure.sent
        ? { kind: 'doubtful', reason, retryAfterMs: undefined }
        : { kind: 'refused', message: reason };
    }
    case 'unexpected': {
      const status = statusOf(run.reply);
      const retryAfterMs = run.reply.retryAfterMs;
      if (run.reply.limited === true) return { kind: 'later', reason: run.reason, retryAfterMs };
      if (isPassing(run.reply) || (status >= 200 && status < 300) || status === 0) {
        return { kind: 'doubtful', reason: run.reason, retryAfterMs };
      }
      return { kind: 'refused', message: run.reason };
    }
    case 'done':
      if (run.missing.length > 0) {
        return {
          kind: 'doubtful',
          reason: `the reply to ${step.name} lacks ${run.missing.join(', ')}`,
          retryAfterMs: undefined,
        };
      }
      return { kind: 'done', job: run.captured };
  }
}

export async function runFind(
  context: StepContext,
  tool: Tool,
  view: JobView,
  index: number,
): Promise<FindOutcome> {
  const step = stepAt(tool, index);
  if (step.find === undefined) return { kind: 'ambiguous', reason: `${step.name} has no find step` };
  const run = await runStep(context, step.find, scopeOf(context, view));
  switch (run.kind) {
    case 'skipped':
      return { kind: 'ambiguous', reason: `the find step of ${step.name} does not apply` };
    case 'failed':
      return { kind: 'later', reason: line(context, run.failure.reason), retryAfterMs: undefined };
    case 'unexpected':
      if (statusOf(run.reply) === 404) return { kind: 'none' };
      return { kind: 'later', reason: run.reason, retryAfterMs: run.reply.retryAfterMs };
    case 'done':
      return run.missing.length > 0 ? { kind: 'none' } : { kind: 'found', job: run.captured };
  }
}

function stepAt(tool: Tool, index: number): CreateStep {
  const step = tool.create[index];
  if (step === undefined) throw new Error(`${tool.key} has no create step ${index}`);
  return step;
}

function line(context: StepContext, text: string): string {
  return context.redact(cleanLine(text, excerptLimit));
}
