// One JSON Schema, compiled: the only place that knows which validator is behind it.

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { sentenceOf } from '../errors.ts';
import type { JsonObject } from '../exact-json.ts';

/** What does not fit, in the validator's words (`data/a/0 must be string`); undefined when all does. */
export type Validate = (value: unknown) => string | undefined;

/**
 * A validator of its own for each schema: two schemas with the same `$id` would share the first one's otherwise.
 * @returns `fault`, in the validator's words, when the schema is none.
 */
export function compileSchema(schema: JsonObject): { validate: Validate } | { fault: string } {
  try {
    const validate = new AjvJsonSchemaValidator().getValidator(schema);
    return {
      validate(value) {
        const result = validate(value);
        return result.valid ? undefined : result.errorMessage;
      },
    };
  } catch (error) {
    return { fault: sentenceOf(error) };
  }
}
