// Starting a job: intent first, then the upstream, then the link, and only then the answer.

import type { Upstream } from '../drivers/driver.ts';
import { StoreError } from '../errors.ts';
import type { StoredTask } from '../stores/store.ts';
import { about, apply, type TaskDeps } from './apply.ts';
import { advanceCreate, untilStored } from './create.ts';
import { pollOnce } from './follow.ts';
import { type NewTaskRequest, newTask } from './new-task.ts';
import type { Observation } from './observation.ts';
import type { Task } from './task.ts';
import { viewOf } from './view.ts';
import { within } from './within.ts';

export interface StartRequest extends NewTaskRequest {
  upstream: Upstream;
  /** The adapter text that the task will follow. */
  adapterText: string;
  /** The caller's request; an abort before the upstream was called starts nothing. */
  signal?: AbortSignal;
}

export type Started =
  /** Linked, ended already, or in a doubt that is still being resolved. */
  | { kind: 'task'; stored: StoredTask }
  /** The upstream clearly refused: nothing was created and no record is kept. */
  | { kind: 'refused'; message: string }
  /** The start key was used with other arguments. */
  | { kind: 'key_reused' }
  | { kind: 'aborted' };

/** The longest a call waits for its job to exist. */
const createLimitMs = 60_000;
/** Between two sends of a create: one second, then half as much again each time. */
const resendMs = 1_000;
const resendGrowth = 1.5;
const settleEveryMs = 250;
/** The lease outlives the longest create and settle, so that nobody else touches the task meanwhile. */
const leaseMarginMs = 30_000;

/** @throws StoreError when the intent can't be stored: then the upstream heard nothing. */
export async function start(deps: TaskDeps, request: StartRequest): Promise<Started> {
  if (request.signal?.aborted) return { kind: 'aborted' };
  const { plan } = request.upstream;
  const task = newTask(request, deps.clock.now());
  const schedule = { dueAt: task.createdAt, intervalMs: plan.timing.every };
  const inserted = await deps.store.insert({
    task,
    schedule,
    leaseUntil: task.createdAt + createLimitMs + plan.timing.settle + leaseMarginMs,
    adapterText: request.adapterText,
  });
  if (inserted.kind === 'exists') return repeated(deps, request, inserted.existing, task.argsHash);
  deps.metrics.taskCreated(task.adapter);
  const intent: Handover = { stored: { task, schedule, outcome: undefined }, retryAfterMs: undefined };
  const created = await orElse<Handover | Refused>(deps, task, intent, () =>
    create(deps, request.upstream, task),
  );
  if ('refused' in created) {
    await cleanUpRefused(deps, request.upstream, created.task);
    await untilStored(deps, task, () => deps.store.remove(task));
    deps.log.warn({ ...about(task), reason: created.refused }, 'the upstream refused to create a job');
    return { kind: 'refused', message: created.refused };
  }
  const linked = created.stored?.task.stage === 'following';
  if (created.stored && created.stored.task.stage !== 'ended')
    deps.log.info({ ...about(task), job: created.stored.task.job }, 'task created');
  const settles = plan.timing.settle > 0 && linked;
  const { stored, retryAfterMs } =
    settles && created.stored ? await settle(deps, request.upstream, created.stored) : created;
  // Without a settle the commit that linked the job has handed it over already.
  const handed =
    stored && stored.task.stage !== 'ended' && (settles || !linked)
      ? await orElse(deps, task, stored, () => release(deps, request.upstream, stored, retryAfterMs))
      : stored;
  if (handed === undefined) throw new Error(`task ${task.key} vanished while it was being created`);
  return { kind: 'task', stored: handed };
}

/** A task that goes on; `retryAfterMs`: not to be looked at before, as the upstream asks. */
interface Handover {
  stored: StoredTask | undefined;
  retryAfterMs: number | undefined;
}

/** Nothing was started; earlier steps may have left something all the same. */
interface Refused {
  refused: string;
  task: Task;
}

const cleanupMs = 10_000;

/** Removes what the steps before the refused one have made. One try: no record is kept that could tell of more. */
async function cleanUpRefused(deps: TaskDeps, upstream: Upstream, task: Task): Promise<void> {
  if (!upstream.plan.cleansUp || Object.keys(task.job).length === 0) return;
  const outcome = await within(deps.clock, cleanupMs, upstream.cleanUp(viewOf(task), 'refused'));
  if (outcome?.kind === 'done') return;
  const reason = outcome?.reason ?? 'the upstream does not answer';
  deps.log.warn({ ...about(task), reason }, 'what a refused create has left upstream could not be removed');
}

/** Runs the create steps for up to {@link createLimitMs}; what is still in doubt then is left to the scheduler. */
async function create(deps: TaskDeps, upstream: Upstream, task: Task): Promise<Handover | Refused> {
  const until = deps.clock.monotonic() + createLimitMs;
  const limit = new AbortController();
  const cancelLimit = deps.clock.after(createLimitMs, () => limit.abort());
  const lease = upstream.plan.timing.settle > 0 ? 'hold' : 'until_linked';
  const options = { recovering: false, lease, signal: limit.signal } as const;
  try {
    let current = task;
    for (let wait = resendMs; ; wait *= resendGrowth) {
      const advanced = await advanceCreate(deps, upstream, current, options);
      if ('refused' in advanced)
        return limit.signal.aborted ? { refused: notInTime(current), task: current } : advanced;
      const { stored, retryAfterMs } = advanced;
      if (stored?.task.stage !== 'creating') return { stored, retryAfterMs: undefined };
      current = stored.task;
      const pause = Math.max(wait, retryAfterMs ?? 0);
      if (deps.clock.monotonic() + pause >= until) {
        if (current.create.doubt !== undefined) return { stored, retryAfterMs: pause };
        return { refused: notInTime(current), task: current };
      }
      await deps.clock.sleep(pause);
    }
  } finally {
    cancelLimit();
  }
}

function notInTime(task: Task): string {
  const reason = task.trouble.reason ?? 'too many other calls are waiting for the upstream';
  return `the upstream did not take the job within ${createLimitMs / 1_000} seconds: ${reason}`;
}

/** A job that ends within `timing.settle` is answered directly. */
async function settle(deps: TaskDeps, upstream: Upstream, linked: StoredTask): Promise<Handover> {
  const until = deps.clock.monotonic() + upstream.plan.timing.settle;
  let handover: Handover = { stored: linked, retryAfterMs: undefined };
  for (;;) {
    const task = handover.stored?.task;
    if (task?.stage !== 'following') return handover;
    const seen = await within(deps.clock, until - deps.clock.monotonic(), pollOnce(upstream, task));
    if (seen === undefined) return handover;
    const linkedTask = handover.stored;
    const stored = await orElse(deps, task, linkedTask, () =>
      apply(deps, task, upstream.plan, seen, { lease: 'hold' }),
    );
    if (stored === linkedTask) return handover;
    handover = { stored, retryAfterMs: retryAfterOf(seen) };
    const pause = Math.max(settleEveryMs, handover.retryAfterMs ?? 0);
    if (deps.clock.monotonic() + pause > until) return handover;
    await deps.clock.sleep(pause);
  }
}

function retryAfterOf(observations: readonly Observation[]): number | undefined {
  const waits = observations.map((seen) => ('retryAfterMs' in seen ? (seen.retryAfterMs ?? 0) : 0));
  const longest = Math.max(0, ...waits);
  return longest > 0 ? longest : undefined;
}

/** Once the intent is stored, a call is answered with its task even if the store fails: the lease's end brings it back. */
async function orElse<T>(deps: TaskDeps, task: Task, fallback: T, write: () => Promise<T>): Promise<T> {
  try {
    return await write();
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    deps.log.warn({ ...about(task), err: error }, 'a new task is followed later, as the store fails');
    return fallback;
  }
}

/** Hands the task over to the scheduler. */
async function release(
  deps: TaskDeps,
  upstream: Upstream,
  stored: StoredTask,
  retryAfterMs = 0,
): Promise<StoredTask | undefined> {
  const { task } = stored;
  const { every } = upstream.plan.timing;
  const urgent = task.cancel?.state === 'requested' && task.stage === 'following';
  const pause = task.stage === 'following' ? every : Math.min(every, resendMs);
  const wait = urgent ? 0 : Math.max(pause, retryAfterMs);
  const dueAt = Math.min(deps.clock.now() + wait, Math.max(deps.clock.now(), task.deadline));
  const moved = await deps.store.reschedule(task, { dueAt, intervalMs: every }, task.version);
  const fresh = moved ? { ...stored, schedule: { dueAt, intervalMs: every } } : await deps.store.get(task);
  if (!moved && fresh !== undefined && fresh.task.stage !== 'ended')
    return release(deps, upstream, fresh, retryAfterMs);
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
  return { kind: 'task', stored };
}
