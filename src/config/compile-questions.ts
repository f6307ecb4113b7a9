// Compiles the questions of a tool: `confirm` before anything is created, `ask` while the job waits for a person.

import type { Json, JsonObject } from '../exact-json.ts';
import type { AskQuestion, ConfirmQuestion, QuestionSchema } from './adapter.ts';
import type { RawAsk, RawConfirm } from './adapter-schema.ts';
import { storedType } from './compile-capture.ts';
import { type FileContext, type PlaceCompiler, placeCompiler } from './compile-context.ts';
import { compileStep, compileSteps, type StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import type { Expression } from './expression.ts';
import type { Member, Names, Shape } from './expression-names.ts';
import { questionSchemaFaults } from './schema-check.ts';
import { namesOfSchema } from './schema-names.ts';
import { hasHole } from './template.ts';
import { type Captured, namesWith, response, withCaptures } from './tool-names.ts';

/** @returns the questions and the shape of `confirm` for everything after them. */
export function compileConfirm(
  raw: readonly RawConfirm[],
  path: Path,
  base: Names,
  context: FileContext,
): { questions: ConfirmQuestion[]; confirm: Shape } {
  const members: { [key: string]: Member } = {};
  const shape = (): Shape => ({
    kind: 'members',
    members: { ...members },
    open: false,
    declare: 'add a confirm question with that key',
  });
  checkKeys(raw, path, context);
  const questions = raw.map((item, index): ConfirmQuestion => {
    const at = [...path, index];
    const before = { ...base, confirm: shape() };
    const when =
      item.when === undefined
        ? undefined
        : placeCompiler(context, { names: before }).expression([...at, 'when'], item.when, { want: 'bool' });
    const compiler = placeCompiler(context, { names: before, present: when?.tested ?? new Set() });
    const message = compiler.text([...at, 'message'], item.message);
    const schema = questionSchema(item.schema, [...at, 'schema'], context);
    members[item.key] = {
      type: 'map<string, dyn>',
      certain: item.when === undefined,
      fix: `the question is not always asked: test has(confirm.${item.key})`,
      shape: answerShape(schema, `confirm.${item.key}`),
    };
    return { key: item.key, when: when?.expression, message, schema };
  });
  return { questions, confirm: shape() };
}

/** @returns the questions and the captures of their fetches. */
export function compileAsk(
  raw: readonly RawAsk[],
  path: Path,
  place: Omit<StepPlace, 'role' | 'lastReply'>,
): { questions: AskQuestion[]; captured: Captured } {
  const { context } = place;
  checkKeys(raw, path, context);
  let all = place.captured;
  const questions = raw.map((item, index): AskQuestion => {
    const at = [...path, index];
    const fetch =
      item.fetch && compileStep(item.fetch, [...at, 'fetch'], { ...place, role: 'fetch', lastReply: true });
    const captured = fetch?.captured ?? place.captured;
    const outside = placeCompiler(context, { names: namesWith(place.base, captured, { response }) });
    const each = compileEach(item, at, outside, context);
    const base: Names = each === undefined ? place.base : { ...place.base, item: { kind: 'any' } };
    const names = namesWith(base, captured, { response });
    const when =
      item.when === undefined
        ? undefined
        : placeCompiler(context, { names }).expression([...at, 'when'], item.when, { want: 'bool' });
    const present = when?.tested ?? new Set<string>();
    const compiler = placeCompiler(context, { names, present });
    const id = each && compileId(item, at, placeCompiler(context, { names }), context);
    const message = compiler.text([...at, 'message'], item.message);
    const { schema, answer } = askSchema(item.schema, [...at, 'schema'], compiler, context);
    const sent: StepPlace = { ...place, base, captured, present, role: 'ask', lastReply: true };
    const accepted = { ...sent, base: { ...base, answer } };
    const later = (fetch?.step.capture ?? []).map(({ name, value }) => ({
      name,
      type: storedType(value.type),
    }));
    all = withCaptures(all, later, { certain: false, by: `the question ${item.key}` });
    return {
      key: item.key,
      fetch: fetch?.step,
      each: each && id && { list: each, id },
      when: when?.expression,
      message,
      schema,
      onAccept: compileSteps(item.onAccept, [...at, 'onAccept'], accepted).steps,
      onDecline: compileSteps(item.onDecline, [...at, 'onDecline'], sent).steps,
      onCancel: compileSteps(item.onCancel, [...at, 'onCancel'], sent).steps,
    };
  });
  return { questions, captured: all };
}

function compileEach(
  raw: RawAsk,
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): Expression | undefined {
  if (raw.each !== undefined)
    return compiler.expression([...path, 'each'], raw.each, { want: 'list' }).expression;
  if (raw.id !== undefined)
    context.problem([...path, 'id'], 'is for the items of each, and there is none', { key: true });
  return undefined;
}

function compileId(
  raw: RawAsk,
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): Expression | undefined {
  if (raw.id !== undefined) return compiler.expression([...path, 'id'], raw.id).expression;
  context.problem([...path, 'each'], 'needs id, which tells one item from another at every look', {
    key: true,
    hint: 'for example id: item.id',
  });
  return undefined;
}

/** A schema with holes is checked as far as it is written down; the rest is checked each time it is made. */
function askSchema(
  raw: { [key: string]: unknown },
  path: Path,
  compiler: PlaceCompiler,
  context: FileContext,
): { schema: QuestionSchema; answer: Shape } {
  // The file was read as JSON values only.
  const whole = raw as JsonObject;
  if (!hasHole(JSON.stringify(whole))) {
    const schema = questionSchema(raw, path, context);
    return { schema: { kind: 'fixed', schema }, answer: answerShape(schema, 'answer') };
  }
  const { required, ...kept } = withoutHoles(whole) as JsonObject;
  const made = Object.keys(whole).filter((key) => kept[key] === undefined && !filled.has(key));
  const written: JsonObject = { ...kept, ...Object.fromEntries(made.map((key) => [key, ''])) };
  const schema = { kind: 'made' as const, template: compiler.value(path, whole) };
  if (written.properties === undefined) {
    // All fields come from the upstream: what they are called is not known yet.
    questionSchema({ ...written, properties: {} }, path, context);
    return { schema, answer: { kind: 'any' } };
  }
  const checked = required === undefined ? written : { ...written, required };
  questionSchema(checked, path, context);
  return { schema, answer: answerShape(checked, 'answer') };
}

/** Parts of a schema that the upstream may fill in as a whole. */
const filled = new Set(['required', 'properties']);

/** The parts without holes; undefined when the value itself is one. */
function withoutHoles(value: Json): Json | undefined {
  if (typeof value === 'string') return hasHole(value) ? undefined : value;
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map(withoutHoles);
    return items.some((item) => item === undefined) ? undefined : value;
  }
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, member]) => {
      const kept = withoutHoles(member);
      return kept === undefined ? [] : [[key, kept]];
    }),
  );
}

function checkKeys(raw: readonly { key: string }[], path: Path, context: FileContext): void {
  const seen = new Set<string>();
  for (const [index, { key }] of raw.entries()) {
    if (seen.has(key)) context.problem([...path, index, 'key'], `there is another question "${key}"`);
    seen.add(key);
  }
}

function questionSchema(raw: { [key: string]: unknown }, path: Path, context: FileContext): JsonObject {
  // The file was read as JSON values only.
  const schema = raw as JsonObject;
  for (const fault of questionSchemaFaults(schema))
    context.problem([...path, ...fault.path], fault.message, { hint: fault.hint, key: fault.key ?? false });
  return schema;
}

function answerShape(schema: JsonObject, path: string): Shape {
  return namesOfSchema(schema, { path, declare: "declare it in the question's schema", defaults: false });
}
