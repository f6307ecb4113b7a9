// Defaults of arguments.

import { expect, it } from 'vitest';
import { applyDefaults } from '../../src/config/defaults.ts';
import type { JsonObject } from '../../src/exact-json.ts';

const schema: JsonObject = {
  type: 'object',
  properties: {
    ref: { type: 'string', default: 'main' },
    count: { type: 'integer', default: 3 },
    labels: { type: 'array', default: ['a'] },
    note: { type: ['string', 'null'] },
    flag: { type: 'boolean', default: false },
  },
};

it('fills in what is missing and leaves what was given', () => {
  expect(applyDefaults(schema, { ref: 'dev', flag: true })).toEqual({
    ref: 'dev',
    flag: true,
    count: 3,
    labels: ['a'],
  });
  expect(applyDefaults(schema, { note: null })).toMatchObject({ note: null, ref: 'main' });
});

it('changes neither the schema nor the arguments', () => {
  const args: JsonObject = {};
  const filled = applyDefaults(schema, args);
  (filled.labels as string[]).push('b');
  expect(args).toEqual({});
  expect(applyDefaults(schema, {})).toMatchObject({ labels: ['a'] });
});

it('copes with a schema without properties', () => {
  expect(applyDefaults({ type: 'object' }, { a: 1 })).toEqual({ a: 1 });
});
