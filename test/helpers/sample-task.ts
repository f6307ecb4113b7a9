// A task in the creating stage and a plan, for tests of the pure task life.

import type { ToolPlan } from '../../src/drivers/driver.ts';
import type { Context } from '../../src/tasks/moves/move.ts';
import type { Task } from '../../src/tasks/task.ts';
import { makeTask } from './task-fixture.ts';

export const startTime = Date.UTC(2031, 4, 6, 7, 8, 9);

export function samplePlan(changes: Partial<ToolPlan> = {}): ToolPlan {
  return {
    adapter: 'sample',
    digest: 'd1',
    tool: 'run',
    createSteps: [{ recovery: { repeat: false, repeatForMs: undefined, find: undefined } }],
    stages: [{ name: 'status', withinMs: undefined }],
    timing: {
      every: 5_000,
      max: 60_000,
      timeout: 3_600_000,
      keep: 60_000,
      settle: 0,
      onTimeout: 'leave',
    },
    canCancel: true,
    cleansUp: false,
    escalations: [],
    ...changes,
  };
}

export function sampleTask(changes: Partial<Task> = {}): Task {
  return makeTask({
    id: 'task-1',
    adapter: 'sample',
    digest: 'd1',
    tool: 'run',
    stage: 'creating',
    message: undefined,
    progress: undefined,
    job: {},
    create: { step: 0, sentAt: startTime, doubt: undefined },
    createdAt: startTime,
    linkedAt: undefined,
    expiresAt: startTime + 3_660_000,
    ...changes,
  });
}

export function followingTask(changes: Partial<Task> = {}): Task {
  return sampleTask({
    stage: 'following',
    job: { id: 7n },
    create: { step: 1, sentAt: startTime, doubt: undefined },
    linkedAt: startTime,
    ...changes,
  });
}

export function sampleContext(now: number, plan: ToolPlan = samplePlan()): Context {
  return { now, plan, intervalMs: plan.timing.every, random: 0.5 };
}
