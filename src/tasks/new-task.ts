// The first state of a task.

import { createHash } from 'node:crypto';
import type { Upstream } from '../drivers/driver.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';
import { newTaskId, newTaskKey } from './ids.ts';
import { calm } from './moves/move.ts';
import type { Task } from './task.ts';

export interface NewTaskRequest {
  caller: string;
  upstream: Pick<Upstream, 'plan'>;
  args: JsonObject;
  /** Accepted answers of the tool's confirm questions. */
  confirm: JsonObject;
  /** A repeated start with the same key gives the same task. */
  startKey: string | undefined;
}

/** The record of a start, before the upstream hears anything. */
export function newTask(request: NewTaskRequest, now: number): Task {
  const { plan } = request.upstream;
  const deadline = now + plan.timing.timeout;
  return {
    caller: request.caller,
    id: newTaskId(now),
    key: newTaskKey(),
    adapter: plan.adapter,
    digest: plan.digest,
    tool: plan.tool,
    args: request.args,
    confirm: request.confirm,
    startKey: request.startKey,
    argsHash: hashOf(request.args),
    stage: 'creating',
    phase: 'working',
    message: undefined,
    progress: undefined,
    job: {},
    create: { step: 0, sentAt: now, doubt: undefined },
    statusStage: 0,
    stageSince: undefined,
    verdict: undefined,
    questions: [],
    asked: {},
    answers: [],
    cancel: undefined,
    cleanup: undefined,
    trouble: calm,
    ending: undefined,
    createdAt: now,
    linkedAt: undefined,
    updatedAt: now,
    deadline,
    expiresAt: deadline + plan.timing.keep,
    version: 1,
  };
}

/** SHA-256 of the arguments, independent of the order of their members. */
export function hashOf(args: JsonObject): string {
  return createHash('sha256')
    .update(stringifyExact(sorted(args)))
    .digest('hex');
}

function sorted(value: JsonObject[string]): JsonObject[string] {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key] ?? null)]),
  );
}
