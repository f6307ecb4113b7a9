// Running the create steps of a task, and what may be done when the outcome of one is unknown.
//
// A create is never blindly repeated. What a doubt allows is the adapter's word, in this order: the same request
// again (idempotency key, or a step that is repeatable), else a look-up by task.key, else the task ends as
// "outcome unknown".

import type { Upstream } from '../drivers/driver.ts';
import { StoreError } from '../errors.ts';
import type { StoredTask } from '../stores/store.ts';
import { type ApplyOptions, apply, type TaskDeps } from './apply.ts';
import type { Observation } from './reduce.ts';
import type { Task } from './task.ts';
import { viewOf } from './view.ts';

type CreateAttempt =
  | { kind: 'observed'; observation: Observation }
  /** A clear no on the first send: nothing was created, and no record is kept. */
  | { kind: 'refused'; message: string };

/** A look-up that found nothing this often, the last time after `withinMs`, proves that there is no job. */
const looksNeeded = 2;

/** How long the captures of a job that exists upstream are tried to be stored before it is left to recovery. */
const storeRetryMs = 30_000;
const storeRetryEveryMs = 250;

/**
 * Runs create steps until the task is linked, has ended, or has to wait. Captures are stored as they arrive.
 * @param recovering the process that sent the current step's request is gone, so nobody knows what became of it.
 * @returns the stored task (undefined: it is gone), or the refusal of a task whose record is still there.
 */
export async function advanceCreate(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
  recovering: boolean,
  options: ApplyOptions,
): Promise<{ stored: StoredTask | undefined } | { refused: string }> {
  let current = task;
  let inDoubt = recovering;
  for (;;) {
    const attempt = await attemptCreate(upstream, current, deps.clock.now(), inDoubt);
    if (attempt.kind === 'refused') return { refused: attempt.message };
    const { observation } = attempt;
    const moreSteps =
      observation.kind === 'created' && current.create.step + 1 < upstream.plan.createSteps.length;
    const stored = await persist(
      deps,
      upstream,
      current,
      observation,
      moreSteps ? { lease: 'hold' } : options,
    );
    if (!moreSteps || stored?.task.stage !== 'creating') return { stored };
    current = stored.task;
    inDoubt = false;
  }
}

/** The job may exist already, so a store that fails for a moment is tried again instead of losing its captures. */
async function persist(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
  observation: Observation,
  options: ApplyOptions,
): Promise<StoredTask | undefined> {
  const until = deps.clock.monotonic() + storeRetryMs;
  for (;;) {
    try {
      return await apply(deps, task, upstream.plan, [observation], options);
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'store_closed' || deps.clock.monotonic() >= until)
        throw error;
      deps.log.error({ err: error, task: task.id }, 'a created job could not be stored yet; trying again');
      await deps.clock.sleep(storeRetryEveryMs);
    }
  }
}

/**
 * @param recovering see {@link advanceCreate}
 */
async function attemptCreate(
  upstream: Upstream,
  task: Task,
  now: number,
  recovering: boolean,
): Promise<CreateAttempt> {
  const index = task.create.step;
  const recovery = upstream.plan.createSteps[index]?.recovery;
  if (recovery === undefined) throw new Error(`create step ${index} of ${task.tool} does not exist`);
  const inDoubt = task.create.doubt !== undefined || recovering;
  if (inDoubt) {
    const reason = task.create.doubt?.reason ?? 'taskferry stopped while the request was under way';
    const sentAt = task.create.sentAt ?? task.createdAt;
    const mayRepeat =
      recovery.repeat && (recovery.repeatForMs === undefined || now - sentAt < recovery.repeatForMs);
    if (!mayRepeat) {
      if (recovery.find === undefined) return observed({ kind: 'create_unknown', reason });
      const looked = await lookUp(upstream, task, recovery.find.withinMs, reason, now - sentAt);
      if (looked !== 'none') return observed(looked);
    }
  }
  const outcome = await upstream.createStep(viewOf(task), index);
  switch (outcome.kind) {
    case 'done':
      return observed({ kind: 'created', job: outcome.job });
    case 'refused':
      // An earlier send may have made the job, so a later refusal proves nothing.
      if (inDoubt)
        return observed({
          kind: 'create_unknown',
          reason: `a repeated request was refused: ${outcome.message}`,
        });
      return { kind: 'refused', message: outcome.message };
    case 'later':
      return observed(
        inDoubt
          ? {
              kind: 'create_doubt',
              reason: outcome.reason,
              looked: false,
              retryAfterMs: outcome.retryAfterMs,
            }
          : { kind: 'create_later', reason: outcome.reason, retryAfterMs: outcome.retryAfterMs },
      );
    case 'doubtful':
      return observed({
        kind: 'create_doubt',
        reason: outcome.reason,
        looked: false,
        retryAfterMs: outcome.retryAfterMs,
      });
  }
}

async function lookUp(
  upstream: Upstream,
  task: Task,
  withinMs: number,
  reason: string,
  sinceSent: number,
): Promise<Observation | 'none'> {
  const found = await upstream.find(viewOf(task), task.create.step);
  switch (found.kind) {
    case 'found':
      return { kind: 'created', job: found.job };
    case 'ambiguous':
      return { kind: 'create_unknown', reason: found.reason };
    case 'later':
      return { kind: 'create_doubt', reason: found.reason, looked: false, retryAfterMs: found.retryAfterMs };
    case 'none': {
      const looks = (task.create.doubt?.looks ?? 0) + 1;
      if (looks >= looksNeeded && sinceSent >= withinMs) return 'none';
      return { kind: 'create_doubt', reason, looked: true, retryAfterMs: undefined };
    }
  }
}

function observed(observation: Observation): CreateAttempt {
  return { kind: 'observed', observation };
}
