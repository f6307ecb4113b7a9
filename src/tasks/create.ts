// Running the create steps of a task, and what may be done when the outcome of one is unknown.
//
// A create is never blindly repeated. What a doubt allows is the adapter's word, in this order: the same request
// again (idempotency key, or a step that is repeatable), else a look-up by task.key, else the task ends as
// "outcome unknown".

import type { Upstream } from '../drivers/driver.ts';
import { StoreError } from '../errors.ts';
import type { StoredTask } from '../stores/store.ts';
import { type ApplyOptions, about, apply, type TaskDeps } from './apply.ts';
import type { Observation } from './observation.ts';
import type { Task } from './task.ts';
import { viewOf } from './view.ts';

type CreateAttempt =
  | { kind: 'observed'; observation: Observation }
  /** A clear no on the first send: nothing was created, and no record is kept. */
  | { kind: 'refused'; message: string };

/** A look-up that found nothing this often, the last time after `withinMs`, proves that there is no job. */
const looksNeeded = 2;

/** How long a write whose loss would cost a job its trace is tried before the task is left to recovery. */
const storeRetryMs = 30_000;
const storeRetryEveryMs = 250;

export interface AdvanceOptions {
  /** As for `apply`; `until_linked`: the commit that links the job gives the lease back, any other keeps it. */
  lease: ApplyOptions['lease'] | 'until_linked';
  /** The process that sent the current step's request is gone, so nobody knows what became of it. */
  recovering: boolean;
  /** Ends waiting for the upstream; what was sent by then is in doubt. */
  signal?: AbortSignal;
}

export type Advanced =
  /** Undefined: the task is gone. `retryAfterMs`: the upstream asked to be left alone for that long. */
  | { stored: StoredTask | undefined; retryAfterMs: number | undefined }
  /** The refusal of a task whose record is still there, as it was when it was refused. */
  | { refused: string; task: Task };

/** Runs create steps until the task is linked, has ended, or has to wait. Captures are stored as they arrive. */
export async function advanceCreate(
  deps: TaskDeps,
  upstream: Upstream,
  task: Task,
  { recovering, signal, lease }: AdvanceOptions,
): Promise<Advanced> {
  let current = task;
  let interrupted = recovering;
  for (;;) {
    const attempt = await attemptCreate(upstream, current, deps.clock.now(), interrupted, signal);
    if (attempt.kind === 'refused') return { refused: attempt.message, task: current };
    const { observation } = attempt;
    if (observation.kind === 'create_doubt' && current.create.doubt === undefined) {
      deps.log.warn(
        { ...about(current), reason: observation.reason },
        'it is not known whether a job was created',
      );
    }
    const goesOn =
      observation.kind === 'create_again' ||
      (observation.kind === 'created' && current.create.step + 1 < upstream.plan.createSteps.length);
    const known = { task: current, schedule: undefined, outcome: undefined };
    const links = observation.kind === 'created' && !goesOn;
    const held = goesOn || lease === 'hold' || (lease === 'until_linked' && !links);
    const stored = await untilStored(deps, current, () =>
      apply(deps, current, upstream.plan, [observation], { lease: held ? 'hold' : 'release', known }),
    );
    if (!goesOn || stored?.task.stage !== 'creating') {
      return { stored, retryAfterMs: 'retryAfterMs' in observation ? observation.retryAfterMs : undefined };
    }
    current = stored.task;
    interrupted = false;
  }
}

/** Tries a write again while the store fails for a moment: without it a job would lose its trace. */
export async function untilStored<T>(deps: TaskDeps, task: Task, write: () => Promise<T>): Promise<T> {
  const until = deps.clock.monotonic() + storeRetryMs;
  for (let tries = 0; ; tries++) {
    try {
      return await write();
    } catch (error) {
      if (!(error instanceof StoreError) || error.code === 'store_closed') throw error;
      const fields = { ...about(task), err: error };
      if (deps.clock.monotonic() >= until) {
        deps.log.error(fields, 'what became of a create could not be stored; it is looked into later');
        throw error;
      }
      if (tries === 0)
        deps.log.error(fields, 'what became of a create is not stored yet; trying again for half a minute');
      await deps.clock.sleep(storeRetryEveryMs);
    }
  }
}

async function attemptCreate(
  upstream: Upstream,
  task: Task,
  now: number,
  interrupted: boolean,
  signal: AbortSignal | undefined,
): Promise<CreateAttempt> {
  const index = task.create.step;
  const recovery = upstream.plan.createSteps[index]?.recovery;
  if (recovery === undefined) throw new Error(`create step ${index} of ${task.tool} does not exist`);
  const inDoubt = task.create.doubt !== undefined || interrupted;
  const reason = task.create.doubt?.reason ?? 'taskferry stopped while the request was under way';
  const sentAt = task.create.sentAt;
  const mayRepeat =
    recovery.repeat && (recovery.repeatForMs === undefined || now - sentAt < recovery.repeatForMs);
  if (inDoubt && !mayRepeat) {
    if (recovery.find === undefined) return observed({ kind: 'create_unknown', reason });
    // Repeats may have been sent for as long as they were allowed.
    const lastSentAt = recovery.repeat ? sentAt + (recovery.repeatForMs ?? 0) : sentAt;
    const look = { withinMs: recovery.find.withinMs, reason, sinceSent: now - lastSentAt, signal };
    const looked = await lookUp(upstream, task, look);
    return observed(looked === 'none' ? { kind: 'create_again' } : looked);
  }
  const outcome = await upstream.createStep(viewOf(task), index, signal);
  switch (outcome.kind) {
    case 'done':
      return observed({ kind: 'created', job: outcome.job });
    case 'refused':
      if (!inDoubt) return { kind: 'refused', message: outcome.message };
      // An earlier send may have made the job, so a later refusal proves nothing.
      if (!outcome.judged) return observed(doubt(outcome.message, undefined));
      return refusedRepeat(upstream, task, now, outcome.message, signal);
    case 'later':
      return observed(
        inDoubt
          ? doubt(outcome.reason, outcome.retryAfterMs)
          : { kind: 'create_later', reason: outcome.reason, retryAfterMs: outcome.retryAfterMs },
      );
    case 'doubtful':
      return observed(doubt(outcome.reason, outcome.retryAfterMs));
  }
}

/** The upstream refuses what it may have done before: only a look-up can still tell. */
async function refusedRepeat(
  upstream: Upstream,
  task: Task,
  now: number,
  message: string,
  signal: AbortSignal | undefined,
): Promise<CreateAttempt> {
  const reason = `a repeated request was refused: ${message}`;
  const find = upstream.plan.createSteps[task.create.step]?.recovery.find;
  if (find === undefined) return observed({ kind: 'create_unknown', reason });
  const sinceSent = now - task.create.sentAt;
  const looked = await lookUp(upstream, task, { withinMs: find.withinMs, reason, sinceSent, signal });
  return looked === 'none' ? { kind: 'refused', message } : observed(looked);
}

interface Look {
  withinMs: number;
  /** The doubt that the look-up may end. */
  reason: string;
  /** Milliseconds since the request was last sent, at least. */
  sinceSent: number;
  signal: AbortSignal | undefined;
}

async function lookUp(
  upstream: Upstream,
  task: Task,
  { withinMs, reason, sinceSent, signal }: Look,
): Promise<Observation | 'none'> {
  const found = await upstream.find(viewOf(task), task.create.step, signal);
  switch (found.kind) {
    case 'found':
      return { kind: 'created', job: found.job };
    case 'ambiguous':
      return { kind: 'create_unknown', reason: found.reason };
    case 'later':
      return doubt(found.reason, found.retryAfterMs);
    case 'none': {
      const looks = (task.create.doubt?.looks ?? 0) + 1;
      if (looks >= looksNeeded && sinceSent >= withinMs) return 'none';
      return { kind: 'create_doubt', reason, looked: true, retryAfterMs: undefined };
    }
  }
}

function doubt(reason: string, retryAfterMs: number | undefined): Observation {
  return { kind: 'create_doubt', reason, looked: false, retryAfterMs };
}

function observed(observation: Observation): CreateAttempt {
  return { kind: 'observed', observation };
}
