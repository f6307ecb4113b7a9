// Create steps: which replies mean a job, which a clear no, and which leave a doubt.

import type { CreateStep, Tool } from '../config/adapter.ts';
import type { Scope } from '../config/expression.ts';
import type { JsonObject } from '../exact-json.ts';
import { excerptLimit } from './clean-text.ts';
import type { CreateOutcome, FindOutcome, JobView } from './driver.ts';
import {
  evaluate,
  isPassing,
  refusesCredential,
  runStep,
  type StepContext,
  type StepRun,
  scopeOf,
  shown,
  statusOf,
} from './steps.ts';

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
    // Only a create that a caller waits for has a signal; one that is recovered has none.
    ...(signal && { signal, forCaller: true }),
    ...(header !== undefined && { headers: { [header]: view.key } }),
  });
  switch (run.kind) {
    case 'skipped':
      return { kind: 'done', job: {} };
    case 'failed': {
      const reason = shown(context, run.failure.reason, excerptLimit);
      return run.failure.sent
        ? { kind: 'doubtful', reason, retryAfterMs: undefined }
        : { kind: 'refused', message: reason, judged: run.failure.code === 'invalid_request' };
    }
    case 'unexpected': {
      const status = statusOf(run.reply);
      const retryAfterMs = run.reply.retryAfterMs;
      if (run.meaning === 'refused') return { kind: 'refused', message: run.reason, judged: true };
      if (run.meaning === 'retry' || run.reply.limited === true)
        return { kind: 'later', reason: run.reason, retryAfterMs };
      if (isPassing(run) || (status >= 200 && status < 300) || status === 0) {
        return { kind: 'doubtful', reason: run.reason, retryAfterMs };
      }
      return { kind: 'refused', message: run.reason, judged: !refusesCredential(run.reply) };
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

/** Only a readable reply of the upstream's own that shows no job proves anything; all else leaves the doubt. */
export async function runFind(
  context: StepContext,
  tool: Tool,
  view: JobView,
  index: number,
  signal?: AbortSignal,
): Promise<FindOutcome> {
  const step = stepAt(tool, index);
  if (step.find === undefined) return { kind: 'ambiguous', reason: `${step.name} has no find step` };
  const scope = scopeOf(context, view);
  const run = await runStep(context, step.find, scope, signal && { signal, forCaller: true });
  switch (run.kind) {
    case 'skipped':
      return { kind: 'ambiguous', reason: `the find step of ${step.name} does not apply` };
    case 'failed': {
      const reason = shown(context, run.failure.reason, excerptLimit);
      return run.failure.code === 'invalid_request'
        ? { kind: 'ambiguous', reason }
        : { kind: 'later', reason, retryAfterMs: undefined };
    }
    case 'unexpected':
      return unexpectedLook(context, step.find, scope, run);
    case 'done':
      if (run.missing.length === 0) return { kind: 'found', job: run.captured };
      if (Object.keys(run.captured).length === 0) return { kind: 'none' };
      return {
        kind: 'later',
        reason: `the look-up found the job, but lacks ${run.missing.join(', ')}`,
        retryAfterMs: undefined,
      };
  }
}

function unexpectedLook(
  context: StepContext,
  find: NonNullable<CreateStep['find']>,
  scope: Scope,
  run: Extract<StepRun, { kind: 'unexpected' }>,
): FindOutcome {
  const { reply, reason } = run;
  const later: FindOutcome = { kind: 'later', reason, retryAfterMs: reply.retryAfterMs };
  const status = statusOf(reply);
  if (run.meaning === 'missing') return { kind: 'none' };
  if (reply.unreadable !== undefined || isPassing(run) || refusesCredential(reply)) return later;
  if (status === 404) return { kind: 'none' };
  if (status < 200 || status >= 300) return { kind: 'ambiguous', reason };
  // An `expect` that says no to a good reply, such as an empty list. One that can't be evaluated says nothing.
  const after: Scope = { ...scope, response: reply.response as JsonObject };
  const says = find.expect && evaluate(context, find.expect, after, `${find.name}: expect`);
  return says === false ? { kind: 'none' } : later;
}

function stepAt(tool: Tool, index: number): CreateStep {
  const step = tool.create[index];
  if (step === undefined) throw new Error(`${tool.key} has no create step ${index}`);
  return step;
}
