// JSON with exact whole numbers: what is read, what is written, and how deep it may be.

import { describe, expect, it } from 'vitest';
import { maxJsonDepth, parseExact, parseForWire, stringifyExact } from '../src/exact-json.ts';

/** JSON text of arrays in arrays, with `inner` in the middle. */
const nested = (levels: number, inner = ''): string => '['.repeat(levels) + inner + ']'.repeat(levels);

describe('parseExact', () => {
  it('reads whole numbers as bigints with all their digits, and others as doubles', () => {
    expect(parseExact('{"id":9007199254740993,"list":[0,-1,1.5,1e3,1.0],"text":"7"}')).toEqual({
      id: 9_007_199_254_740_993n,
      list: [0n, -1n, 1.5, 1_000, 1],
      text: '7',
    });
  });

  it('refuses numbers that no double can hold', () => {
    expect(() => parseExact('[1e999]')).toThrow('the number 1e999 is out of range');
  });

  it('refuses whole numbers of more than a thousand digits, and does not repeat them', () => {
    const digits = '9'.repeat(1_000);
    expect(parseExact(`[-${digits}]`)).toEqual([-BigInt(digits)]);
    const message = 'the number 99999999999999999999… has more than 1000 digits';
    expect(() => parseExact(`{"id":${digits}9}`)).toThrow(new SyntaxError(message));
    expect(() => parseExact(`[${'9'.repeat(400)}.5]`)).toThrow(
      'the number 99999999999999999999… is out of range',
    );
  });

  it('refuses text that is nested too deeply, whatever its strings hold', () => {
    expect(parseExact(nested(maxJsonDepth))).toBeInstanceOf(Array);
    expect(() => parseExact(nested(maxJsonDepth + 1))).toThrow(`nested deeper than ${maxJsonDepth} levels`);
    expect(() => parseExact(nested(1_000_000))).toThrow(SyntaxError);
    expect(parseExact(JSON.stringify(`${nested(200)}"[`))).toBe(`${nested(200)}"[`);
  });
});

describe('parseForWire', () => {
  it('gives values that are written back digit for digit', () => {
    const text = '{"id":9007199254740993,"small":7,"half":0.5,"huge":-123456789012345678901234567890}';
    const value = parseForWire(text);
    expect(JSON.stringify(value)).toBe(text);
    expect(value).toMatchObject({ small: 7, half: 0.5 });
  });

  it('takes every value that was admitted, inside the levels that a result adds', () => {
    const text = `{"result":{"structuredContent":{"value":${nested(maxJsonDepth, '12345678901234567890')}}}}`;
    expect(JSON.stringify(parseForWire(text))).toBe(text);
  });

  it('refuses text deeper than its limit', () => {
    expect(() => parseForWire(nested(97))).toThrow('nested deeper than 96 levels');
    expect(() => parseForWire(nested(3), 2)).toThrow('nested deeper than 2 levels');
  });
});

describe('stringifyExact', () => {
  it('writes bigints as digits and leaves out undefined members', () => {
    const value = { id: 2n ** 64n, list: [1n, 'x', null] };
    expect(stringifyExact(value)).toBe('{"id":18446744073709551616,"list":[1,"x",null]}');
    expect(parseExact(stringifyExact(value))).toEqual(value);
  });
});
