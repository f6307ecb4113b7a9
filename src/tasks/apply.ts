// Commits observations: read, reduce, compare-and-set, tell. The only place that writes a task's state.

import type { Clock } from '../clock.ts';
import type { ToolPlan, Upstream } from '../drivers/driver.ts';
import type { Log } from '../observability/log.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Store, StoredTask } from '../stores/store.ts';
import type { Changes } from './changes.ts';
import type { Observation } from './observation.ts';
import type { RenderOutcome } from './outcome.ts';
import { reduce } from './reduce.ts';
import type { Task, TaskRef } from './task.ts';

export interface TaskDeps {
  store: Store;
  clock: Clock;
  changes: Changes;
  upstreams: UpstreamFinder;
  render: RenderOutcome;
  /** Tells the scheduler of this process that a task of `adapter` is due at `dueAt`. */
  wake(adapter: string, dueAt: number): void;
  log: Log;
  metrics: Metrics;
  /** From [0, 1). */
  random(): number;
}

/** Finds the tool that a stored task follows: by its digest, whether or not the file still has that text. */
export interface UpstreamFinder {
  of(task: Pick<Task, 'adapter' | 'digest' | 'tool'>): Promise<{ upstream: Upstream } | { missing: string }>;
  /** Replaces known secret values. */
  redact(text: string): string;
}

export interface ApplyOptions {
  /**
   * `release`: whoever applies is done with the task and its lease ends. `hold`: it keeps its lease, or has
   * none; a nearer look is only brought forward.
   */
  lease: 'release' | 'hold';
  /** The task as it was read last, to save reading it again: every write checks that it has not changed. */
  known?: StoredTask;
}

/** What the log says of a task: its key, which the upstream sees too, never its id, which may give access. */
export function about(task: Task): { task: string; adapter: string; tool: string } {
  return { task: task.key, adapter: task.adapter, tool: task.tool };
}

/** More conflicts than this on one task are a bug, not a race. */
const conflictLimit = 50;

/**
 * Applies `observations` to the stored task as one change.
 * @returns the task after it, or undefined when it is gone.
 */
export async function apply(
  deps: TaskDeps,
  ref: TaskRef,
  plan: ToolPlan,
  observations: readonly Observation[],
  { lease, known }: ApplyOptions,
): Promise<StoredTask | undefined> {
  let first = known;
  for (let tries = 0; tries < conflictLimit; tries++) {
    const stored = first ?? (await deps.store.get(ref));
    if (stored === undefined) return undefined;
    const unread = first !== undefined;
    first = undefined;
    const before = stored.task;
    const now = deps.clock.now();
    const { task, schedule, durable, visible, outcome } = reduce(before, observations, {
      now,
      plan,
      intervalMs: stored.schedule?.intervalMs ?? plan.timing.every,
      random: deps.random(),
      redact: (text) => deps.upstreams.redact(text),
    });
    if (task === before) {
      if (before.stage === 'ended' || lease === 'hold' || schedule === null) {
        // Nothing is written, so nothing would show that somebody else changed it meanwhile.
        if (unread) continue;
        return stored;
      }
      if (!(await deps.store.reschedule(ref, schedule, before.version))) continue;
      deps.wake(before.adapter, schedule.dueAt);
      return { ...stored, schedule };
    }
    const rendered = outcome && deps.render(task, outcome);
    const saved = await deps.store.save({
      task,
      durable,
      // Whoever held the lease of a task that has ended is done with it.
      ...(schedule === null || lease === 'release' || task.stage === 'ended'
        ? { schedule }
        : { dueBy: schedule.dueAt }),
      ...(rendered !== undefined && { outcome: rendered }),
    });
    if (!saved) continue;
    if (schedule !== null) deps.wake(task.adapter, schedule.dueAt);
    if (outcome) {
      deps.metrics.taskEnded(task.adapter, outcome.ending);
      deps.log.info({ ...about(task), ending: outcome.ending }, 'task ended');
    }
    const after: StoredTask = {
      task,
      schedule:
        lease === 'hold' && schedule !== null ? (stored.schedule ?? schedule) : (schedule ?? undefined),
      outcome: rendered,
    };
    if (visible) deps.changes.publish(after);
    return after;
  }
  throw new Error(`a task changed ${conflictLimit} times while one observation was applied`);
}
