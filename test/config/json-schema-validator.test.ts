// Values are checked by their own members, whatever those are called.

import { expect, it } from 'vitest';
import { compileSchema } from '../../src/config/json-schema-validator.ts';
import type { JsonObject } from '../../src/exact-json.ts';

function compiled(schema: JsonObject): (value: unknown) => string | undefined {
  const outcome = compileSchema(schema);
  if ('fault' in outcome) throw new Error(outcome.fault);
  return outcome.validate;
}

it('a member that every object inherits is missing until the data has it', () => {
  const properties = { constructor: { type: 'string' }, toString: { type: 'string' } };
  const check = compiled({ type: 'object', properties, required: ['constructor'] });
  expect(check({})).toContain("must have required property 'constructor'");
  expect(check({ constructor: 'a' })).toBeUndefined();
  expect(check({ constructor: 'a', toString: 1 })).toContain('/toString must be string');
});

it('objects that are compared may not hide how they are compared', () => {
  const check = compiled({ type: 'array', uniqueItems: true });
  expect(check([{ valueOf: 1 }, { valueOf: 1 }])).toContain('must not have members named valueOf');
  expect(check([{ a: 1 }, { a: 2 }])).toBeUndefined();
});

it('a schema of another dialect is still understood', () => {
  const check = compiled({
    $schema: 'http://json-schema.org/draft-07/schema#',
    type: 'array',
    items: [{ type: 'string' }],
  });
  expect(check(['a', 1])).toBeUndefined();
  expect(check([1])).toContain('must be string');
});
