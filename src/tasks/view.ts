// The two ways tasks and drivers look at each other: what a driver may know of a task (never its id, which may act
// as a bearer token), and what a task goes by while its adapter can't be loaded.

import type { JobView, ToolPlan } from '../drivers/driver.ts';
import type { Task } from './task.ts';

export function viewOf(task: Task): JobView {
  return {
    key: task.key,
    createdAt: task.createdAt,
    args: task.args,
    confirm: task.confirm,
    job: task.job,
    statusStage: task.statusStage,
  };
}

/** The plan of a task whose adapter can't be loaded: looked at now and then, wishes are kept, until its deadline. */
export function planWithoutAdapter(task: Task): ToolPlan {
  const minute = 60_000;
  return {
    adapter: task.adapter,
    digest: task.digest,
    tool: task.tool,
    createSteps: [],
    stages: [],
    timing: {
      every: minute,
      max: minute,
      timeout: task.deadline - task.createdAt,
      keep: task.expiresAt - task.deadline,
      settle: 0,
      onTimeout: 'leave',
    },
    canCancel: true,
    cleansUp: false,
    escalations: [],
  };
}
