// One JSON Schema, compiled: the only place that knows which validator is behind it. It is the SDK's, but it looks at
// a value's own members only.

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
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
    const validate = validatorFor(schema).getValidator(schema);
    return {
      validate(value) {
        const result = tried(() => validate(value));
        return result.valid ? undefined : result.errorMessage;
      },
    };
  } catch (error) {
    return { fault: sentenceOf(error) };
  }
}

/** The options of the SDK, and one more: `constructor` or `toString` are members only where the data has them. */
function validatorFor({ $schema }: JsonObject): AjvJsonSchemaValidator {
  // Other dialects are the SDK's matter.
  if (typeof $schema === 'string' && !$schema.includes('2020-12')) return new AjvJsonSchemaValidator();
  const ajv = new Ajv2020({
    strict: false,
    validateFormats: true,
    validateSchema: false,
    allErrors: true,
    ownProperties: true,
  });
  formats.default(ajv);
  return new AjvJsonSchemaValidator(ajv);
}

type Result = ReturnType<ReturnType<AjvJsonSchemaValidator['getValidator']>>;

function tried(run: () => Result): Result | { valid: false; errorMessage: string } {
  try {
    return run();
  } catch (error) {
    // Comparing objects (uniqueItems, enum, const), the validator calls their `valueOf` and `toString`.
    if (!(error instanceof TypeError)) throw error;
    return { valid: false, errorMessage: 'data must not have members named valueOf or toString' };
  }
}
