// Compiles the questions of a tool: `confirm` before anything is created, `ask` while the job waits for a person.

import type { JsonObject } from '../exact-json.ts';
import type { AskQuestion, ConfirmQuestion } from './adapter.ts';
import type { RawAsk, RawConfirm } from './adapter-schema.ts';
import { storedType } from './compile-capture.ts';
import { type FileContext, placeCompiler } from './compile-context.ts';
import { compileStep, type StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import type { Member, Names, Shape } from './expression-names.ts';
import { questionSchemaFaults } from './schema-check.ts';
import { namesOfSchema } from './schema-names.ts';
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
    const names = namesWith(place.base, captured, { response });
    const when =
      item.when === undefined
        ? undefined
        : placeCompiler(context, { names }).expression([...at, 'when'], item.when, { want: 'bool' });
    const present = when?.tested ?? new Set<string>();
    const message = placeCompiler(context, { names, present }).text([...at, 'message'], item.message);
    const schema = questionSchema(item.schema, [...at, 'schema'], context);
    const sent: StepPlace = { ...place, captured, present, role: 'ask', lastReply: true };
    const accepted = { ...sent, base: { ...place.base, answer: answerShape(schema, 'answer') } };
    const later = (fetch?.step.capture ?? []).map(({ name, value }) => ({
      name,
      type: storedType(value.type),
    }));
    all = withCaptures(all, later, { certain: false, by: `the question ${item.key}` });
    return {
      key: item.key,
      fetch: fetch?.step,
      when: when?.expression,
      message,
      schema,
      onAccept: compileStep(item.onAccept, [...at, 'onAccept'], accepted).step,
      onDecline: item.onDecline && compileStep(item.onDecline, [...at, 'onDecline'], sent).step,
      onCancel: item.onCancel && compileStep(item.onCancel, [...at, 'onCancel'], sent).step,
    };
  });
  return { questions, captured: all };
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
