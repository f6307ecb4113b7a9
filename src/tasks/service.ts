// Tasks as the protocol edge sees them: start, read, answer, cancel, wait, listen.

import type { StoredTask } from '../stores/store.ts';
import { apply, type TaskDeps } from './apply.ts';
import type { Listener } from './changes.ts';
import { expireLate, follow } from './follow.ts';
import type { Observation } from './observation.ts';
import { type Started, type StartRequest, start } from './start.ts';
import type { GivenAnswer, TaskRef } from './task.ts';
import { planWithoutAdapter } from './view.ts';

export interface TaskService {
  /** See start.ts. */
  start(request: StartRequest): Promise<Started>;
  /** Undefined when there is no such task of this caller. */
  get(ref: TaskRef): Promise<StoredTask | undefined>;
  /**
   * Stores answers to open questions; keys that are not open are ignored. Durable when it resolves.
   * @returns false when there is no such task.
   */
  answer(ref: TaskRef, answers: readonly GivenAnswer[]): Promise<boolean>;
  /** Stores the wish to cancel, durable when it resolves; the upstream is told next. @returns false when unknown. */
  cancel(ref: TaskRef): Promise<boolean>;
  /** Resolves when the task has ended or asks a question, `ms` have passed, or `signal` aborts. */
  waitForEnd(ref: TaskRef, ms: number, signal?: AbortSignal): Promise<StoredTask | undefined>;
  /** Calls `listener` at each client-visible change. @returns the function that stops it. */
  subscribe(ref: TaskRef, listener: Listener): () => void;
  /** One tick of a leased task; for the scheduler. */
  follow(ref: TaskRef): Promise<void>;
  /** Ends a leased task past its deadline without waiting for its upstream; for the scheduler. */
  expire(ref: TaskRef): Promise<void>;
}

export function createTaskService(deps: TaskDeps): TaskService {
  return {
    start: (request) => start(deps, request),
    get: (ref) => deps.store.get(ref),
    subscribe: (ref, listener) => deps.changes.subscribe(ref, listener),
    follow: (ref) => follow(deps, ref),
    expire: (ref) => expireLate(deps, ref),

    async answer(ref, answers) {
      return applyOwn(deps, ref, { kind: 'answers', answers });
    },

    async cancel(ref) {
      return applyOwn(deps, ref, { kind: 'cancel_requested' });
    },

    async waitForEnd(ref, ms, signal) {
      const stop = new AbortController();
      const end = (): void => stop.abort();
      signal?.addEventListener('abort', end, { once: true });
      if (signal?.aborted) end();
      const halts = ({ task }: StoredTask): boolean => task.stage === 'ended' || task.questions.length > 0;
      const unsubscribe = deps.changes.subscribe(ref, (changed) => halts(changed) && end());
      try {
        const stored = await deps.store.get(ref);
        if (stored === undefined || halts(stored)) return stored;
        await deps.clock.sleep(ms, stop.signal);
        return await deps.store.get(ref);
      } finally {
        unsubscribe();
        signal?.removeEventListener('abort', end);
      }
    },
  };
}

async function applyOwn(deps: TaskDeps, ref: TaskRef, observation: Observation): Promise<boolean> {
  const stored = await deps.store.get(ref);
  if (stored === undefined) return false;
  if (stored.task.stage === 'ended') return true;
  const found = await deps.upstreams.of(stored.task);
  const plan = 'missing' in found ? planWithoutAdapter(stored.task) : found.upstream.plan;
  return (await apply(deps, ref, plan, [observation], { lease: 'hold' })) !== undefined;
}
