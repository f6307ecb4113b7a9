// The one translation from a task to what clients see (`DetailedTask`); tasks/get, notifications/tasks and the
// answer of tools/call are all made here.

import { type JsonObject, parseForWire } from '../exact-json.ts';
import type { StoredTask } from '../stores/store.ts';
import type { OpenQuestion, Task } from '../tasks/task.ts';

export interface Viewer {
  /** The request that asks declares elicitation: without it a question can't be answered, so none is shown. */
  canElicit: boolean;
  /** Wall time. */
  now: number;
}

export type Snapshot = { taskId: string; status: Status; [field: string]: unknown };

type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

const shortestPollMs = 1_000;
const longestPollMs = 30_000;
/** A client that asks in the very moment of the upstream poll would get the old state. */
const newsMarginMs = 100;

/** Flat, as the specification has it (`Result & Task`). */
export function snapshot(stored: StoredTask, viewer: Viewer): Snapshot {
  const { task, schedule, outcome } = stored;
  // What is still to be removed upstream is no news.
  const nextLook = task.stage === 'ended' ? undefined : schedule?.dueAt;
  const status = statusOf(task, viewer);
  const message = messageOf(task, status);
  return {
    taskId: task.id,
    status,
    ...(message !== undefined && { statusMessage: message }),
    createdAt: new Date(task.createdAt).toISOString(),
    lastUpdatedAt: new Date(task.updatedAt).toISOString(),
    ttlMs: task.expiresAt - task.createdAt,
    pollIntervalMs: pollInterval(nextLook ?? viewer.now, viewer.now),
    ...(status === 'input_required' && { inputRequests: inputRequests(task) }),
    ...(task.stage === 'ended' && outcome !== undefined && (parseForWire(outcome) as object)),
  };
}

/** The answer of tools/call: the snapshot without its payload; a question is read by tasks/get. */
export function createTaskResult(stored: StoredTask, viewer: Viewer): { resultType: 'task' } & Snapshot {
  const { inputRequests: _, ...task } = snapshot(stored, viewer) as Snapshot & { inputRequests?: unknown };
  return { resultType: 'task', ...task };
}

function statusOf(task: Task, viewer: Viewer): Status {
  if (task.stage !== 'ended') {
    return task.questions.length > 0 && viewer.canElicit ? 'input_required' : 'working';
  }
  switch (task.phase) {
    case 'succeeded':
    case 'failed':
      // A job that ran and failed is a completed call; `failed` is for JSON-RPC errors alone.
      return 'completed';
    case 'cancelled':
      return 'cancelled';
    default:
      return 'failed';
  }
}

function messageOf(task: Task, status: Status): string | undefined {
  const question = task.questions[0];
  if (status === 'working' && question !== undefined) {
    return unanswerable(question);
  }
  return task.message;
}

/** What a client reads instead of a question that it can't answer. */
export function unanswerable(question: OpenQuestion): string {
  return `Needs an answer this client cannot give: ${question.message}`;
}

function inputRequests(task: Task): { [key: string]: unknown } {
  return Object.fromEntries(
    task.questions.map(({ key, message, schema }) => [key, elicitation(message, schema)]),
  );
}

/** A question as an input request: a form. */
export function elicitation(message: string, schema: JsonObject): object {
  return { method: 'elicitation/create', params: { mode: 'form', message, requestedSchema: schema } };
}

/** Time to the next upstream poll: asking sooner brings no news. */
function pollInterval(dueAt: number, now: number): number {
  return Math.ceil(Math.min(Math.max(dueAt - now + newsMarginMs, shortestPollMs), longestPollMs));
}
