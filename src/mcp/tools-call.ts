// tools/call: validate, confirm, start, and answer with a task, a result, or the state of a job that goes on.

import { randomUUID } from 'node:crypto';
import { ProtocolError, ProtocolErrorCode, type ServerContext } from '@modelcontextprotocol/server';
import type { Clock } from '../clock.ts';
import { type JsonObject, parseForWire, stringifyExact } from '../exact-json.ts';
import type { StoredTask } from '../stores/store.ts';
import { reference } from '../tasks/message.ts';
import type { TaskService } from '../tasks/service.ts';
import { readArguments } from './arguments.ts';
import type { Catalog, ServedTool } from './catalog.ts';
import { confirm, type StateCodec } from './confirm.ts';
import { callOutcome, errorResult, textResult, toolResult } from './render.ts';
import {
  capabilitiesOf,
  declaresElicitation,
  declaresTasks,
  isLegacy,
  localCaller,
  tasksRequired,
} from './request.ts';
import { createTaskResult, unanswerable } from './snapshot.ts';
import type { UsedConfirmations } from './used-confirmations.ts';

export interface CallDeps {
  catalog: Catalog;
  tasks: TaskService;
  clock: Clock;
  codec: StateCodec;
  /** Those of plain tools, which keep no record that a replay could find. */
  confirmations: UsedConfirmations;
  /** Values of the adapter's `env`. */
  envOf(served: ServedTool): JsonObject;
  /** Replaces known secret values. */
  redact(text: string): string;
  /** Aborts when the server stops: whoever waits for a job is told that it goes on. */
  stopping: AbortSignal;
}

/** Name of the client's own key for a start that may be repeated, under `_meta`. */
const startKeyName = 'taskferry/idempotencyKey';
const startKeyForm = /^[\x21-\x7e]{1,128}$/;

export interface CallParams {
  name: string;
  arguments?: { [name: string]: unknown } | undefined;
}

export async function callTool(deps: CallDeps, params: CallParams, context: ServerContext): Promise<object> {
  const served = deps.catalog.byName(params.name);
  if (served === undefined) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown tool: ${params.name}`);
  }
  const read = readArguments(served, params.arguments);
  if (read.kind === 'invalid') return errorResult(read.message);
  const { tool } = served;
  const tasks = declaresTasks(capabilitiesOf(context));
  if (tool.kind === 'job' && !tasks && tool.withoutTasks.mode === 'reject') {
    if (!isLegacy(context)) throw tasksRequired();
    return errorResult(
      `${served.name} runs as a task: it needs a client that supports MCP tasks (io.modelcontextprotocol/tasks). Nothing was started.`,
    );
  }
  const clientKey = startKeyOf(context);
  const confirmed = await confirm(served, read.args, deps.envOf(served), clientKey, deps.codec, context);
  if (confirmed.kind === 'answer') return confirmed.result;
  if (tool.kind === 'call' && confirmed.nonce !== undefined && !deps.confirmations.use(confirmed.nonce)) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      'requestState was used before: call the tool again to be asked anew',
    );
  }
  if (tool.kind === 'call') return callDirectly(deps, served, read.args, confirmed.answers, context);
  const started = await deps.tasks.start({
    caller: localCaller,
    upstream: served.upstream,
    adapterText: served.adapter.text,
    args: read.args,
    confirm: confirmed.answers,
    startKey: clientKey ?? (confirmed.nonce && `confirm:${confirmed.nonce}`),
    signal: context.mcpReq.signal,
  });
  switch (started.kind) {
    case 'refused':
      return errorResult(`${served.name} was not started: ${started.message}`);
    case 'key_reused':
      throw new ProtocolError(
        ProtocolErrorCode.InvalidParams,
        `${startKeyName} was used before with other arguments`,
      );
    case 'aborted':
      throw new ProtocolError(
        ProtocolErrorCode.InternalError,
        'The request was cancelled before anything was started',
      );
    case 'task':
      return answer(deps, served, started.stored, tasks, context);
  }
}

async function callDirectly(
  deps: CallDeps,
  served: ServedTool,
  args: JsonObject,
  confirmed: JsonObject,
  context: ServerContext,
): Promise<object> {
  const view = {
    key: randomUUID(),
    createdAt: deps.clock.now(),
    args,
    confirm: confirmed,
    job: {},
    statusStage: 0,
  };
  const result = await served.upstream.call(view, context.mcpReq.signal);
  return parseForWire(stringifyExact(toolResult(result, served.tool.output))) as object;
}

async function answer(
  deps: CallDeps,
  served: ServedTool,
  stored: StoredTask,
  tasks: boolean,
  context: ServerContext,
): Promise<object> {
  const { signal } = context.mcpReq;
  if (stored.task.stage === 'ended') return callOutcome(stored.outcome, stored.task.message);
  if (tasks) {
    if (signal.aborted) await abandon(deps, served, stored);
    const canElicit = declaresElicitation(capabilitiesOf(context));
    return createTaskResult(stored, { canElicit, now: deps.clock.now() });
  }
  const { withoutTasks } = served.tool;
  const waitMs = withoutTasks.mode === 'wait' ? withoutTasks.waitMs : 0;
  const latest = await waitWithProgress(deps, stored, waitMs, context);
  if (latest?.task.stage === 'ended') return callOutcome(latest.outcome, latest.task.message);
  if (signal.aborted) await abandon(deps, served, stored);
  return textResult(goesOn(deps, served, latest ?? stored));
}

/** The client is gone; what that does to the job is the adapter's word. */
async function abandon(deps: CallDeps, served: ServedTool, stored: StoredTask): Promise<void> {
  if (served.tool.onDisconnect === 'cancel') await deps.tasks.cancel(stored.task);
}

/** Waits for the end; progress is sent only to a request that asked for it by a token. */
async function waitWithProgress(
  deps: CallDeps,
  stored: StoredTask,
  waitMs: number,
  context: ServerContext,
): Promise<StoredTask | undefined> {
  const progressToken = context.mcpReq._meta?.progressToken;
  const signal = AbortSignal.any([context.mcpReq.signal, deps.stopping]);
  if (progressToken === undefined) return deps.tasks.waitForEnd(stored.task, waitMs, signal);
  let progress = 0;
  const unsubscribe = deps.tasks.subscribe(stored.task, ({ task }) => {
    if (task.stage === 'ended' || context.mcpReq.signal.aborted) return;
    progress += 1;
    const message = task.message === undefined ? {} : { message: task.message };
    // A client that went away is noticed by the signal; its unsent progress is of no interest.
    context.mcpReq
      .notify({ method: 'notifications/progress', params: { progressToken, progress, ...message } })
      .catch(() => {});
  });
  try {
    return await deps.tasks.waitForEnd(stored.task, waitMs, signal);
  } finally {
    unsubscribe();
  }
}

/** Not an error: the job goes on, and a client without tasks must not lose what it is called. */
function goesOn(deps: CallDeps, served: ServedTool, { task }: StoredTask): string {
  const [question] = task.questions;
  const state = question === undefined ? task.message : unanswerable(question);
  return [
    `${served.name} is still running and goes on without this call${reference(task, deps.redact)}.`,
    ...(state === undefined ? [] : [`Last status: ${state.replace(/[.\s]+$/, '')}.`]),
    'Do not start it again to see its result: look it up where the job runs.',
  ].join(' ');
}

function startKeyOf(context: ServerContext): string | undefined {
  const key = (context.mcpReq._meta as { [name: string]: unknown } | undefined)?.[startKeyName];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !startKeyForm.test(key)) {
    throw new ProtocolError(
      ProtocolErrorCode.InvalidParams,
      `${startKeyName} must be 1 to 128 visible ASCII characters`,
    );
  }
  return `client:${key}`;
}
