// Starting a job: intent first, then the upstream, then the link, and only then the answer.

import { createHash } from 'node:crypto';
import type { Upstream } from '../drivers/driver.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';
import type { StoredTask } from '../stores/store.ts';
import { apply, type TaskDeps } from './apply.ts';
import { advanceCreate } from './create.ts';
import { pollOnce } from './follow.ts';
import { newTaskId, newTaskKey } from './ids.ts';
import type { Task } from './task.ts';

export interface StartRequest {
  caller: string;
  upstream: Upstream;
  /** The adapter text that the task will follow. */
  adapterText: string;
  args: JsonObject;
  /** Accepted answers of the tool's confirm questions. */
  confirm: JsonObject;
  /** A repeated start with the same key gives the same task. */
  startKey: string | undefined;
  /** The caller's request; an abort before the upstream was called starts nothing. */
  signal?: AbortSignal;
}

export type Started =
  /** Linked, ended already, or in a doubt that is still being resolved. */
  | { kind: 'task'; stored: StoredTask; repeated: boolean }
  /** The upstream clearly refused: nothing was created and no record is kept. */
  | { kind: 'refused'; message: string }
  /** The start key was used with other arguments. */
  | { kind: 'key_reused' }
  | { kind: 'aborted' };

/** The longest a call waits for its job to exist. */
const createLimitMs = 60_000;
const settleEveryMs = 250;
/** The lease outlives the longest create and settle, so that nobody else touches the task meanwhile. */
const leaseMarginMs = 30_000;
const retryEveryMs = 1_000;

/** @throws StoreError when the intent can't be stored: then the upstream heard nothing. */
export async function start(deps: TaskDeps, request: StartRequest): Promise<Started> {
  if (request.signal?.aborted) return { kind: 'aborted' };
  const { plan } = request.upstream;
  const task = newTask(request, deps.clock.now());
  const inserted = await deps.store.insert({
    task,
    schedule: { dueAt: task.createdAt, intervalMs: plan.timing.every },
    leaseUntil: task.createdAt + createLimitMs + plan.timing.settle + leaseMarginMs,
    adapterText: request.adapterText,
  });
  if (inserted.kind === 'exists') return repeated(deps, request, inserted.existing, task.argsHash);
  deps.metrics.taskCreated(task.adapter);
  const created = await create(deps, request.upstream, task);
  if ('refused' in created) {
    await deps.store.remove(task);
    return { kind: 'refused', message: created.refused };
  }
  let { stored } = created;
  if (stored?.task.stage === 'following' && plan.timing.settle > 0)
    stored = await settle(deps, request.upstream, stored);
  if (stored !== undefined && stored.task.stage !== 'ended')
    stored = await release(deps, request.upstream, stored);
  if (stored === undefined) throw new Error(`task ${task.id} vanished while it was being created`);
  return { kind: 'task', stored, repeated: false };
}

function newTask(request: StartRequest, now: number): Task {
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
    verdict: undefined,
    questions: [],
    asked: {},
    answers: [],
    cancel: undefined,
    trouble: {
      kind: undefined,
      since: undefined,
      reason: undefined,
      missing: 0,
      unreadable: 0,
      resultTries: 0,
    },
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

/** Runs the create steps for up to {@link createLimitMs}; what is still in doubt then is left to the scheduler. */
async function create(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
): Promise<{ stored: StoredTask | undefined } | { refused: string }> {
  const until = deps.clock.monotonic() + createLimitMs;
  let current = task;
  for (;;) {
    const advanced = await advanceCreate(deps, upstream, current, false, { lease: 'hold' });
    if ('refused' in advanced) return advanced;
    const { stored } = advanced;
    if (stored?.task.stage !== 'creating') return { stored };
    current = stored.task;
    const wait = Math.max(retryEveryMs, (stored.schedule?.dueAt ?? 0) - deps.clock.now());
    if (deps.clock.monotonic() + wait >= until) {
      if (current.create.doubt !== undefined) return { stored };
      return { refused: current.trouble.reason ?? 'the upstream did not accept the job in time' };
    }
    await deps.clock.sleep(wait);
  }
}

/** A job that ends within `timing.settle` is answered directly. */
async function settle(
  deps: TaskDeps,
  upstream: Upstream,
  linked: StoredTask,
): Promise<StoredTask | undefined> {
  const until = deps.clock.monotonic() + upstream.plan.timing.settle;
  let stored: StoredTask | undefined = linked;
  while (stored?.task.stage === 'following' || stored?.task.stage === 'finishing') {
    stored = await apply(deps, stored.task, upstream.plan, await pollOnce(upstream, stored.task), {
      lease: 'hold',
    });
    if (stored === undefined || stored.task.stage !== 'following') break;
    if (deps.clock.monotonic() + settleEveryMs > until) break;
    await deps.clock.sleep(settleEveryMs);
  }
  return stored;
}

/** Hands the task over to the scheduler. */
async function release(
  deps: TaskDeps,
  upstream: Upstream,
  stored: StoredTask,
): Promise<StoredTask | undefined> {
  const { task } = stored;
  const { every } = upstream.plan.timing;
  const waiting = task.stage !== 'following' || task.cancel?.state === 'requested';
  const dueAt = deps.clock.now() + (waiting ? 0 : every);
  const moved = await deps.store.reschedule(task, { dueAt, intervalMs: every }, task.version);
  const fresh = moved ? { ...stored, schedule: { dueAt, intervalMs: every } } : await deps.store.get(task);
  if (!moved && fresh !== undefined && fresh.task.stage !== 'ended') return release(deps, upstream, fresh);
  deps.wake(task.adapter, dueAt);
  return fresh;
}

/** The same start again: the same task, once it has left the creating stage. */
async function repeated(
  deps: TaskDeps,
  request: StartRequest,
  existing: StoredTask,
  argsHash: string,
): Promise<Started> {
  if (existing.task.argsHash !== argsHash) return { kind: 'key_reused' };
  const until = deps.clock.monotonic() + createLimitMs;
  let stored: StoredTask | undefined = existing;
  while (stored?.task.stage === 'creating' && deps.clock.monotonic() < until) {
    await deps.clock.sleep(settleEveryMs, request.signal);
    if (request.signal?.aborted) return { kind: 'aborted' };
    stored = await deps.store.get(existing.task);
  }
  // The first start was refused and its record removed: this one is a start of its own.
  if (stored === undefined) return start(deps, request);
  return { kind: 'task', stored, repeated: true };
}
