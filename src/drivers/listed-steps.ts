// Steps of one list: a step with `each` is made once for every item, an optional one may fail, and the replies of
// earlier ones are read as `fetched.<step>`.

import type { Step } from '../config/adapter.ts';
import type { Scope } from '../config/expression.ts';
import type { Json, JsonObject } from '../exact-json.ts';
import type { PerformOptions } from './driver.ts';
import { evaluate, holds, type Reply, runStep, type StepContext, type StepRun } from './steps.ts';

export type ListedRun =
  | StepRun
  /** All items are done; nothing is captured of them. */
  | { kind: 'each'; replies: readonly Reply[] };

/** Most requests of one step with `each`. */
const eachLimit = 100;

/** Runs one step of a list. An optional step that fails counts as skipped. */
export async function runListedStep(
  context: StepContext,
  step: Step,
  scope: Scope,
  options?: PerformOptions,
): Promise<ListedRun> {
  const run =
    step.each === undefined
      ? await runStep(context, step, scope, options)
      : await runForEach(context, { ...step, each: step.each }, scope, options);
  const failed = run.kind === 'failed' || run.kind === 'unexpected';
  return failed && step.optional ? { kind: 'skipped' } : run;
}

async function runForEach(
  context: StepContext,
  step: Step & { each: NonNullable<Step['each']> },
  scope: Scope,
  options: PerformOptions | undefined,
): Promise<ListedRun> {
  if (step.when !== undefined && !holds(context, step.when, scope, `${step.name}: when`))
    return { kind: 'skipped' };
  const items = evaluate(context, step.each, scope, `${step.name}: each`);
  if (!Array.isArray(items)) return unusable(`each of ${step.name} gives no list`);
  if (items.length > eachLimit)
    return unusable(`each of ${step.name} gives ${items.length} items, at most ${eachLimit} are allowed`);
  const replies: Reply[] = [];
  for (const item of items) {
    const run = await runStep(context, { ...step, when: undefined }, { ...scope, item }, options);
    if (run.kind === 'failed' || run.kind === 'unexpected') return run;
    if (run.kind === 'done') replies.push(run.reply);
  }
  return { kind: 'each', replies };
}

function unusable(reason: string): StepRun {
  return { kind: 'failed', failure: { kind: 'failed', code: 'invalid_request', sent: false, reason } };
}

/** `fetched` with the replies of one more step. */
export function withFetched(fetched: JsonObject, step: Step, run: ListedRun): JsonObject {
  if (run.kind === 'done') return { ...fetched, [step.name]: run.reply.response as JsonObject };
  if (run.kind !== 'each') return fetched;
  const list: Json = run.replies.map(({ response }) => response as JsonObject);
  return { ...fetched, [step.name]: list };
}
