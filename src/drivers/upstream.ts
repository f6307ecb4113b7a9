// One tool of one adapter over one connection, as tasks see it: the `Upstream` of driver.ts.

import type { Adapter, CreateStep, Tool } from '../config/adapter.ts';
import { deliverAnswer } from './answer.ts';
import { cancelJob } from './cancel.ts';
import { cleanUp } from './cleanup.ts';
import { runCreateStep, runFind } from './create.ts';
import type { Recovery, ToolPlan, Upstream } from './driver.ts';
import { callOnce, readResult } from './result.ts';
import { readStatus } from './status.ts';
import type { StepContext } from './steps.ts';

/** @param servedAs the name the adapter is served under; budgets and the schedule go by it. */
export function createUpstream(
  adapter: Adapter,
  servedAs: string,
  tool: Tool,
  context: StepContext,
): Upstream {
  return {
    plan: planOf(adapter, servedAs, tool),
    createStep: (view, index, signal) => runCreateStep(context, tool, view, index, signal),
    find: (view, index, signal) => runFind(context, tool, view, index, signal),
    poll: (view) => readStatus(context, tool, view),
    result: (view, verdict, poll) => readResult(context, tool, view, verdict, poll),
    cancel: (view, poll, afterMs) => cancelJob(context, tool, view, poll, afterMs),
    cleanUp: (view, outcome) => cleanUp(context, tool, view, outcome),
    answer: (view, answer, poll) => deliverAnswer(context, tool, view, answer, poll),
    call: (view, signal) => callOnce(context, tool, view, signal),
  };
}

function planOf(adapter: Adapter, servedAs: string, tool: Tool): ToolPlan {
  return {
    adapter: servedAs,
    digest: adapter.digest,
    tool: tool.key,
    createSteps: tool.kind === 'job' ? tool.create.map((step) => ({ recovery: recoveryOf(step) })) : [],
    stages: tool.status.map(({ name, withinMs }) => ({ name, withinMs })),
    timing: tool.timing,
    canCancel: tool.cancel.length > 0,
    cleansUp: tool.cleanup.length > 0,
    escalations: [...new Set(tool.cancel.map(({ afterMs }) => afterMs))]
      .filter((ms) => ms > 0)
      .sort((a, b) => a - b),
  };
}

function recoveryOf(step: CreateStep): Recovery {
  return {
    repeat: step.repeatable || step.idempotency !== undefined,
    repeatForMs: step.repeatable ? undefined : step.idempotency?.ttlMs,
    find: step.find && { withinMs: step.find.withinMs },
  };
}
