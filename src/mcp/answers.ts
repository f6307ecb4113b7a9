// Checking answers to elicitation questions: flat content against the question's schema, extra fields dropped.

import type { JsonObject } from '../exact-json.ts';
import { exactIntegers, isUnsafe, unsafeFault } from './arguments.ts';
import { schemaCheck } from './schema-check.ts';

export type ReadAnswer =
  | { kind: 'answer'; action: 'accept' | 'decline' | 'cancel'; content: JsonObject }
  | { kind: 'invalid'; message: string };

/** @param response what the client sent for one key, untrusted. */
export function readAnswer(schema: JsonObject, response: unknown): ReadAnswer {
  if (typeof response !== 'object' || response === null) {
    return { kind: 'invalid', message: 'an object with `action` is wanted' };
  }
  const { action, content } = response as { action?: unknown; content?: unknown };
  if (action === 'decline' || action === 'cancel') return { kind: 'answer', action, content: {} };
  if (action !== 'accept') {
    return { kind: 'invalid', message: '`action` must be accept, decline or cancel' };
  }
  const known = (schema.properties ?? {}) as JsonObject;
  const given = typeof content === 'object' && content !== null ? (content as JsonObject) : {};
  const kept = Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(known, name)));
  const unsafe = Object.keys(kept).find((name) => isUnsafe(kept[name]));
  if (unsafe !== undefined) {
    const fix = "Declare it as a string in the question's schema and answer with one.";
    return { kind: 'invalid', message: `${unsafe} ${unsafeFault} ${fix}` };
  }
  const problem = schemaCheck(schema)(kept);
  if (problem !== undefined) return { kind: 'invalid', message: problem };
  return { kind: 'answer', action, content: exactIntegers(schema, kept) as JsonObject };
}
