// How a task is written down: a flat row of indexed columns and two JSON texts. Every store uses it, so that
// what comes back is the same whichever store is behind.

import { type Json, type JsonObject, parseExact, rawJson } from '../exact-json.ts';
import type { OpenQuestion, PendingAnswer, Schedule, Stage, Task } from '../tasks/task.ts';

export interface TaskRow {
  caller: string;
  id: string;
  version: number;
  stage: string;
  adapter: string;
  digest: string;
  tool: string;
  start_key: string | null;
  expires_at: number;
  /** The fields whose numbers are plain numbers. */
  state: string;
  /** The fields that hold other systems' JSON, whose whole numbers are bigints. */
  data: string;
}

type Column =
  | 'caller'
  | 'id'
  | 'version'
  | 'stage'
  | 'adapter'
  | 'digest'
  | 'tool'
  | 'startKey'
  | 'expiresAt';
type Exact = 'args' | 'confirm' | 'job';

type State = Omit<Task, Column | Exact | 'questions' | 'answers'> & {
  questions: Omit<OpenQuestion, 'schema'>[];
  answers: Omit<PendingAnswer, 'content'>[];
};

interface Data {
  args: JsonObject;
  confirm: JsonObject;
  job: JsonObject;
  schemas: JsonObject[];
  contents: JsonObject[];
}

/** Values as deep as callers may send, inside the two levels that this file adds. */
const storedDepth = 80;

export function encodeTask(task: Task): TaskRow {
  const { caller, id, version, stage, adapter, digest, tool, startKey, expiresAt, ...others } = task;
  const { args, confirm, job, questions, answers, ...rest } = others;
  const state: State = {
    ...rest,
    questions: questions.map(({ schema: _, ...question }) => question),
    answers: answers.map(({ content: _, ...answer }) => answer),
  };
  const data = {
    args,
    confirm,
    job,
    schemas: questions.map((question) => question.schema),
    contents: answers.map((answer) => answer.content),
  };
  return {
    caller,
    id,
    version,
    stage,
    adapter,
    digest,
    tool,
    start_key: startKey ?? null,
    expires_at: Math.ceil(expiresAt),
    state: JSON.stringify(state, (_key, member: unknown) => (member === undefined ? null : member)),
    data: stringifyTyped(data),
  };
}

export function decodeTask(row: TaskRow): Task {
  // Both texts were written by encodeTask, in this version or an older one whose rows a migration has adapted.
  const state = withoutNulls(JSON.parse(row.state)) as State;
  const data = parseExact(row.data, storedDepth) as unknown as Data;
  return {
    ...state,
    caller: row.caller,
    id: row.id,
    version: row.version,
    stage: row.stage as Stage,
    adapter: row.adapter,
    digest: row.digest,
    tool: row.tool,
    startKey: row.start_key ?? undefined,
    expiresAt: row.expires_at,
    args: data.args,
    confirm: data.confirm,
    job: data.job,
    questions: state.questions.map((question, i) => ({ ...question, schema: data.schemas[i] ?? {} })),
    answers: state.answers.map((answer, i) => ({ ...answer, content: data.contents[i] ?? {} })),
  };
}

/** The record's own fields know no null: it stands for undefined, which JSON doesn't have. Changes `value`. */
function withoutNulls(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value ?? undefined;
  const members = value as { [key: string]: unknown };
  for (const key in members) members[key] = withoutNulls(members[key]);
  return value;
}

/** Whole milliseconds: a grown or jittered interval may be a fraction, and stores keep integers. */
export function wholeSchedule(schedule: Schedule): Schedule {
  return { dueAt: Math.round(schedule.dueAt), intervalMs: Math.round(schedule.intervalMs) };
}

/**
 * JSON text from which `parseExact` gives back the very same types: a bigint is written as its digits, a double
 * that happens to be whole with a fraction (`3.0`), so that it doesn't come back as an integer.
 */
function stringifyTyped(value: { [key: string]: Json }): string {
  return JSON.stringify(value, (_key, member: unknown) => {
    if (typeof member === 'bigint') return rawJson(String(member));
    if (typeof member !== 'number' || !Number.isInteger(member)) return member;
    const digits = Object.is(member, -0) ? '-0' : String(member);
    return rawJson(digits.includes('e') ? digits : `${digits}.0`);
  });
}
