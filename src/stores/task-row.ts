// How a task is written down: a flat row of indexed columns and three JSON texts. Every store uses it, so that
// what comes back is the same whichever store is behind.

import { sentenceOf } from '../errors.ts';
import { type Json, type JsonObject, rawJson, refuseDeep } from '../exact-json.ts';
import type { OpenQuestion, PendingAnswer, Schedule, Stage, Task } from '../tasks/task.ts';
import { RecordError } from './store.ts';

/** What a save replaces, and the key that it goes by. */
export interface SavedRow {
  caller: string;
  id: string;
  version: number;
  stage: string;
  expires_at: number;
  /** The fields whose numbers are plain numbers. */
  state: string;
  /** The fields that hold other systems' JSON, whose whole numbers are bigints (see `stringifyTyped`). */
  data: string;
}

/** The whole row: what is not in {@link SavedRow} is written once, as it never changes. */
export interface TaskRow extends SavedRow {
  adapter: string;
  digest: string;
  tool: string;
  start_key: string | null;
  /** `args` and `confirm`, like `data`. */
  input: string;
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
  questions: Omit<OpenQuestion, 'schema' | 'item'>[];
  answers: Omit<PendingAnswer, 'content' | 'item'>[];
};

interface Input {
  args: JsonObject;
  confirm: JsonObject;
}

interface Data {
  job: JsonObject;
  schemas: JsonObject[];
  contents: JsonObject[];
  /** Of questions and of answers; absent in records of before there were any. */
  items?: Json[];
  answeredItems?: Json[];
}

/** Values as deep as callers may send, inside the two levels that this file adds; reading them back recurses. */
const storedDepth = 80;

/** @throws RecordError for a task that `decodeTask` could not read again. */
export function encodeTask(task: Task): TaskRow {
  const { adapter, digest, tool, startKey, args, confirm } = task;
  const input = stringifyTyped({ args, confirm }, task);
  return { ...encodeSave(task), adapter, digest, tool, start_key: startKey ?? null, input };
}

/** The row without what a save leaves alone. @throws RecordError like `encodeTask`. */
export function encodeSave(task: Task): SavedRow {
  const { caller, id, version, stage, expiresAt, job, questions, answers, ...others } = task;
  const { adapter: _, digest: _d, tool: _t, startKey: _s, args: _a, confirm: _c, ...rest } = others;
  const state: State = {
    ...rest,
    questions: questions.map(({ schema: _, item: _i, ...question }) => question),
    answers: answers.map(({ content: _, item: _i, ...answer }) => answer),
  };
  const data = {
    job,
    schemas: questions.map((question) => question.schema),
    contents: answers.map((answer) => answer.content),
    // No item and null are one: a question is asked for an item that is there.
    items: questions.map(({ item }) => item ?? null),
    answeredItems: answers.map(({ item }) => item ?? null),
  };
  return {
    caller,
    id,
    version,
    stage,
    expires_at: Math.ceil(expiresAt),
    state: JSON.stringify(state, (_key, member: unknown) => (member === undefined ? null : member)),
    data: stringifyTyped(data, task),
  };
}

/**
 * `args` and `confirm` are parsed when they are first read: they may be large, and most readers don't need them.
 * A spread copies their values.
 * @throws RecordError when the row is not what `encodeTask` writes.
 */
export function decodeTask(row: TaskRow): Task {
  // The texts were written by encodeTask, in this version or an older one whose rows a migration has adapted.
  const state = readable(row, () => withoutNulls(JSON.parse(row.state)) as State);
  const data = readable(row, () => parseTyped(row.data) as Data);
  let parsed: Input | undefined;
  const input = (): Input => {
    parsed ??= readable(row, () => parseTyped(row.input) as Input);
    return parsed;
  };
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
    get args() {
      return input().args;
    },
    get confirm() {
      return input().confirm;
    },
    job: data.job,
    questions: state.questions.map((question, i) => ({
      ...question,
      item: data.items?.[i] ?? undefined,
      schema: data.schemas[i] ?? {},
    })),
    answers: state.answers.map((answer, i) => ({
      ...answer,
      item: data.answeredItems?.[i] ?? undefined,
      content: data.contents[i] ?? {},
    })),
  };
}

function readable<T>({ adapter, tool }: TaskRow, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new RecordError(
      'store_failed',
      `the record of a task of ${tool} (${adapter}) can't be read: ${sentenceOf(error)}`,
      { fix: 'Its job may still run upstream; the record is purged when it expires.', cause: error },
    );
  }
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
 * JSON text from which `parseTyped` gives back the very same types: a bigint is written as a string of `#` and its
 * digits, and a string that begins with `#` gets another one. `JSON.parse` alone reads it, much faster than with a
 * reviver for every member.
 */
function stringifyTyped(value: { [key: string]: Json }, { adapter, tool }: Task): string {
  try {
    const text = JSON.stringify(value, (_key, member: unknown) => {
      if (typeof member === 'bigint') return `#${member}`;
      if (typeof member === 'string') return member.startsWith('#') ? `#${member}` : member;
      return Object.is(member, -0) ? rawJson('-0') : member;
    });
    refuseDeep(text, storedDepth);
    return text;
  } catch (error) {
    // A very deep value overflows the stack of JSON.stringify: a RangeError.
    const reason =
      error instanceof RangeError ? `nested deeper than ${storedDepth} levels` : sentenceOf(error);
    throw new RecordError('store_failed', `a task of ${tool} (${adapter}) can't be stored: ${reason}`, {
      fix: 'Use values that are nested less deeply.',
      cause: error,
    });
  }
}

function parseTyped(text: string): unknown {
  return withTypes(JSON.parse(text));
}

/** Changes `value`. */
function withTypes(value: unknown): unknown {
  if (typeof value === 'string') {
    if (!value.startsWith('#')) return value;
    return value.startsWith('##') ? value.slice(1) : BigInt(value.slice(1));
  }
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) value[i] = withTypes(value[i]);
  } else {
    const members = value as { [key: string]: unknown };
    for (const key in members) members[key] = withTypes(members[key]);
  }
  return value;
}
