// A task in the creating stage and a plan, for tests of the pure task life.

import type { ToolPlan } from '../../src/drivers/driver.ts';
import type { Context } from '../../src/tasks/reduce.ts';
import type { Task } from '../../src/tasks/task.ts';

export const startTime = Date.UTC(2031, 4, 6, 7, 8, 9);

export function samplePlan(changes: Partial<ToolPlan> = {}): ToolPlan {
  return {
    adapter: 'sample',
    digest: 'd1',
    tool: 'run',
    createSteps: [{ name: 'create', recovery: { repeat: false, repeatForMs: undefined, find: undefined } }],
    timing: {
      every: 5_000,
      max: 60_000,
      timeout: 3_600_000,
      keep: 60_000,
      settle: 0,
      onTimeout: 'leave',
    },
    canCancel: true,
    onDisconnect: 'keep',
    ...changes,
  };
}

export function sampleTask(changes: Partial<Task> = {}): Task {
  return {
    caller: 'local',
    id: 'task-1',
    key: '6f9619ff-8b86-4d01-b42d-00cf4fc964ff',
    adapter: 'sample',
    digest: 'd1',
    tool: 'run',
    args: {},
    confirm: {},
    startKey: undefined,
    argsHash: 'h',
    stage: 'creating',
    phase: 'working',
    message: undefined,
    progress: undefined,
    job: {},
    create: { step: 0, sentAt: startTime, doubt: undefined },
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
    createdAt: startTime,
    linkedAt: undefined,
    updatedAt: startTime,
    deadline: startTime + 3_600_000,
    expiresAt: startTime + 3_660_000,
    version: 1,
    ...changes,
  };
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
