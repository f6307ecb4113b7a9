// The questions a waiting job asks (`ask:`): fixed ones, forms made from its replies, one for each item of a list.

import { createHash } from 'node:crypto';
import type { AskQuestion, Tool } from '../config/adapter.ts';
import type { Scope } from '../config/expression.ts';
import { questionSchemaFaults } from '../config/schema-check.ts';
import { isJsonObject, type Json, type JsonObject, stringifyExact } from '../exact-json.ts';
import { badPoll, besideStatus } from './bad-poll.ts';
import { cleanValue } from './clean-text.ts';
import type { JobView, PollObservation, Question, Response } from './driver.ts';
import { attempt, evaluate, holds, runStep, type StepContext, scopeOf, shown } from './steps.ts';

export type Asking =
  | { kind: 'asked'; questions: readonly Question[]; job: JsonObject; reply: Response }
  /** A question's own fetch failed: the open questions must not look withdrawn. */
  | { kind: 'failed'; observation: PollObservation };

export async function readQuestions(
  context: StepContext,
  tool: Tool,
  view: JobView,
  response: Response,
): Promise<Asking> {
  const questions: Question[] = [];
  let captured: JsonObject = {};
  let reply = response;
  for (const ask of tool.ask) {
    let own: JsonObject = {};
    if (ask.fetch !== undefined) {
      const run = await runStep(
        context,
        ask.fetch,
        scopeOf(context, { ...view, job: { ...view.job, ...captured } }, { response: reply }),
      );
      if (run.kind === 'failed' || run.kind === 'unexpected')
        return {
          kind: 'failed',
          observation: besideStatus(badPoll(context, run), `the question ${ask.key}`),
        };
      if (run.kind === 'done') {
        own = run.captured;
        reply = run.reply.response;
      }
    }
    captured = { ...captured, ...own };
    const scope = scopeOf(context, { ...view, job: { ...view.job, ...captured } }, { response: reply });
    for (const { stem, item } of itemsOf(context, ask, scope)) {
      const made = makeQuestion(context, ask, stem, item === undefined ? scope : { ...scope, item }, own);
      if (made === undefined) continue;
      if ('fault' in made) {
        const reason = shown(context, `the question ${stem} can't be asked: ${made.fault}`);
        return { kind: 'failed', observation: { kind: 'rejected', reason } };
      }
      questions.push({ ...made, stem, ask: ask.key, item });
    }
  }
  return { kind: 'asked', questions, job: captured, reply };
}

/** Most questions that are asked at once for one `ask`; those of further items follow as these are answered. */
const mostItems = 20;

/** One question, or one for each item. */
function itemsOf(
  context: StepContext,
  ask: AskQuestion,
  scope: Scope,
): { stem: string; item: Json | undefined }[] {
  if (ask.each === undefined) return [{ stem: ask.key, item: undefined }];
  const { list, id } = ask.each;
  const items = evaluate(context, list, scope, `ask ${ask.key}: each`);
  if (!Array.isArray(items)) return [];
  const found = new Map<string, { stem: string; item: Json }>();
  for (const item of items) {
    const name = evaluate(context, id, { ...scope, item }, `ask ${ask.key}: id`);
    if (name === undefined || name === null || typeof name === 'object') continue;
    const stem = `${ask.key}_${stemPart(String(name))}`;
    if (!found.has(stem)) found.set(stem, { stem, item });
  }
  return [...found.values()].slice(0, mostItems);
}

/** Question keys are shown to people and models: short and plain, and still different for each item. */
function stemPart(id: string): string {
  return /^[A-Za-z0-9_]{1,40}$/.test(id) ? id : shortHash(id);
}

type Made = Pick<Question, 'message' | 'schema' | 'fingerprint'>;

/** Undefined: not to be asked now. `fault`: the upstream's words make no form that could be shown. */
function makeQuestion(
  context: StepContext,
  ask: AskQuestion,
  stem: string,
  scope: Scope,
  captures: JsonObject,
): Made | { fault: string } | undefined {
  if (ask.when !== undefined && !holds(context, ask.when, scope, `ask ${ask.key}: when`)) return undefined;
  const message = attempt(context, `ask ${ask.key}: message`, () => ask.message.render(scope));
  const text = shown(context, message ?? `The job asks: ${stem}`);
  if (ask.schema.kind === 'fixed')
    return { message: text, schema: ask.schema.schema, fingerprint: shortHash(stringifyExact(captures)) };
  const { template } = ask.schema;
  const value = attempt(context, `ask ${ask.key}: schema`, () => template.render(scope));
  const schema = value === undefined ? undefined : plainSchema(cleanValue(value, context.redact));
  if (schema === undefined) return { fault: 'its schema gives no map' };
  const written = stringifyExact(schema);
  if (written.length > largestSchema)
    return { fault: `its schema is larger than ${largestSchema} characters` };
  const [fault] = questionSchemaFaults(schema);
  if (fault) return { fault: `${['schema', ...fault.path].join('.')} ${fault.message}` };
  return { message: text, schema, fingerprint: shortHash(written + stringifyExact(captures)) };
}

const largestSchema = 32_768;

/** Schemas hold plain numbers; undefined when the value is no map. */
function plainSchema(value: Json): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  return JSON.parse(stringifyExact(value)) as JsonObject;
}

function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 16);
}
