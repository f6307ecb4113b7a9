// tasks/get, tasks/update and tasks/cancel: over the store alone, never causing an upstream call by themselves.

import {
  type ClientCapabilities,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { Clock } from '../clock.ts';
import type { StoredTask } from '../stores/store.ts';
import type { TaskService } from '../tasks/service.ts';
import type { GivenAnswer } from '../tasks/task.ts';
import { readAnswer } from './answers.ts';
import { capabilitiesOf, declaresElicitation, declaresTasks, localCaller, tasksRequired } from './request.ts';
import { type Snapshot, snapshot } from './snapshot.ts';

export interface TasksDeps {
  tasks: TaskService;
  clock: Clock;
}

/** A foreign task and an unknown one get this very answer. */
function taskNotFound(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, 'Failed to retrieve task: Task not found');
}

export async function getTask(deps: TasksDeps, id: string, context: ServerContext): Promise<Snapshot> {
  const capabilities = requireTasks(context);
  const stored = await find(deps, id);
  return snapshot(stored, { canElicit: declaresElicitation(capabilities), now: deps.clock.now() });
}

/** Accepted answers are stored before the acknowledgement; keys that are not open are ignored. */
export async function updateTask(deps: TasksDeps, id: string, context: ServerContext): Promise<Result> {
  requireTasks(context);
  const { inputResponses, droppedInputResponseKeys = [] } = context.mcpReq;
  if (inputResponses === undefined && droppedInputResponseKeys.length === 0) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'Invalid params: inputResponses is required');
  }
  const { task } = await find(deps, id);
  const responses: { [key: string]: unknown } = {
    ...Object.fromEntries(droppedInputResponseKeys.map((key) => [key, undefined])),
    ...inputResponses,
  };
  const answers: GivenAnswer[] = [];
  for (const { key, schema } of task.questions) {
    if (!Object.hasOwn(responses, key)) continue;
    const answer = readAnswer(schema, responses[key]);
    if (answer.kind === 'invalid') {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid answer to ${key}: ${answer.message}`);
    }
    answers.push({ key, action: answer.action, content: answer.content });
  }
  if (answers.length > 0) await deps.tasks.answer(task, answers);
  return {};
}

/** Acknowledged once the wish is stored; the task stays `working` until the upstream says what happened. */
export async function cancelTask(deps: TasksDeps, id: string, context: ServerContext): Promise<Result> {
  requireTasks(context);
  const { task } = await find(deps, id);
  await deps.tasks.cancel(task);
  return {};
}

/** Before any look-up, so that the answer tells nothing about which ids exist. */
function requireTasks(context: ServerContext): ClientCapabilities {
  const capabilities = capabilitiesOf(context);
  if (!declaresTasks(capabilities)) throw tasksRequired();
  return capabilities;
}

async function find(deps: TasksDeps, id: string): Promise<StoredTask> {
  const stored = await deps.tasks.get({ caller: localCaller, id });
  if (stored === undefined) throw taskNotFound();
  return stored;
}
