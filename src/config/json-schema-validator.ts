// The JSON Schema validator for arguments, answers and results: the SDK's, but it looks at a value's own members only.

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { JsonObject } from '../exact-json.ts';

/** Says what does not fit; undefined when all does. */
export type SchemaCheck = (value: unknown) => string | undefined;

/**
 * One validator for each schema: two schemas with the same `$id` would share the first one's otherwise.
 * @throws Error when `schema` is no JSON Schema.
 */
export function compileSchemaCheck(schema: JsonObject): SchemaCheck {
  const validate = validatorFor(schema).getValidator(schema);
  return (value) => {
    const result = tried(() => validate(value));
    return result.valid ? undefined : result.errorMessage;
  };
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
