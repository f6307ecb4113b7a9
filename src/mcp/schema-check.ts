// Does a value fit a JSON Schema, and if not, what is wrong with it in words for people and models.

import { compileSchema } from '../config/json-schema-validator.ts';
import { type JsonObject, stringifyExact } from '../exact-json.ts';

/** Says what does not fit; undefined when all does. */
export type SchemaCheck = (value: unknown) => string | undefined;

/** Compiled schemas by their text: a question is read from the store anew each time. Oldest use first. */
const checks = new Map<string, SchemaCheck>();
const mostChecks = 200;

/** @throws Error for a schema that is none: schemas are checked where they come from. */
export function schemaCheck(schema: JsonObject): SchemaCheck {
  const text = stringifyExact(schema);
  const check = checks.get(text) ?? compile(schema);
  checks.delete(text);
  checks.set(text, check);
  const [oldest] = checks.keys();
  if (checks.size > mostChecks && oldest !== undefined) checks.delete(oldest);
  return check;
}

function compile(schema: JsonObject): SchemaCheck {
  const compiled = compileSchema(schema);
  if ('fault' in compiled) throw new Error(`a JSON Schema can't be used: ${compiled.fault}`);
  return (value) => {
    const problem = compiled.validate(value);
    return problem === undefined ? undefined : inWords(problem);
  };
}

/** Longest description of what does not fit, in characters; the first problems are the ones to mend. */
const longestProblem = 2_000;

/** The validator's `data/a/0 must be string` as `a.0 must be string`. */
function inWords(message: string): string {
  const start = message.slice(0, longestProblem);
  const plain = start
    .replaceAll(/\bdata((?:\/[^\s,/]+)+)/g, (_all, path: string) => path.slice(1).replaceAll('/', '.'))
    .replaceAll(/\bdata must /g, 'the value must ');
  return message.length > longestProblem ? `${plain} …` : plain;
}
