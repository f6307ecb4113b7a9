// Task records for tests: a plausible task that is being followed, with what the test wants to differ.

import type { NewTask } from '../../src/stores/store.ts';
import { newTaskId, newTaskKey } from '../../src/tasks/ids.ts';
import { calm } from '../../src/tasks/moves/move.ts';
import type { Task } from '../../src/tasks/task.ts';

/** When fixtures are created, unless the test says otherwise. */
export const fixtureTime = 1_800_000_000_000;

export function makeTask(differs: Partial<Task> = {}): Task {
  const createdAt = differs.createdAt ?? fixtureTime;
  return {
    caller: 'local',
    id: newTaskId(createdAt),
    key: newTaskKey(),
    adapter: 'builds',
    digest: 'digest-1',
    tool: 'run_build',
    args: { branch: 'main' },
    confirm: {},
    startKey: undefined,
    argsHash: 'a'.repeat(64),
    stage: 'following',
    phase: 'working',
    message: 'started',
    progress: 'started',
    job: { id: 42n },
    create: { step: 1, sentAt: createdAt, doubt: undefined },
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
    createdAt,
    linkedAt: createdAt,
    updatedAt: createdAt,
    deadline: createdAt + 3_600_000,
    expiresAt: createdAt + 7_200_000,
    version: 1,
    ...differs,
  };
}

/** What a store's `insert` takes: due at once and unleased unless the test says otherwise. */
export function makeEntry(differs: Partial<Task> = {}, entry: Partial<Omit<NewTask, 'task'>> = {}): NewTask {
  const task = makeTask(differs);
  return {
    task,
    schedule: { dueAt: task.createdAt, intervalMs: 5_000 },
    leaseUntil: 0,
    adapterText: `text of ${task.digest}`,
    ...entry,
  };
}

/** The task's next state, as `save` expects it. */
export function nextVersion(task: Task, differs: Partial<Task> = {}): Task {
  return { ...task, ...differs, version: task.version + 1 };
}
