// Durations and sizes as files write them.

import { describe, expect, it } from 'vitest';
import { parseDuration, parseSize } from '../../src/config/units.ts';

describe('durations', () => {
  it.each([
    ['250ms', 250],
    ['2.5s', 2500],
    ['1m', 60_000],
    ['1.5h', 5_400_000],
    ['7d', 604_800_000],
    ['0s', 0],
  ])('reads %s as %i whole milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each(['', '5', '5 s', '-1s', '1w', 's', '1e3s', '1.s'])('has no reading for "%s"', (text) => {
    expect(parseDuration(text)).toBeUndefined();
  });
});

it('a duration or size beyond 2^53 is read as that, which is above every bound', () => {
  expect(parseDuration('99999999999999d')).toBe(Number.MAX_SAFE_INTEGER);
  expect(parseSize(`${'9'.repeat(400)}MiB`)).toBe(Number.MAX_SAFE_INTEGER);
});

describe('sizes', () => {
  it('reads KiB and MiB only', () => {
    expect(parseSize('64KiB')).toBe(65_536);
    expect(parseSize('1.5MiB')).toBe(1_572_864);
    for (const text of ['10MB', '10', '1GiB', 'KiB', '1 MiB']) expect(parseSize(text)).toBeUndefined();
  });
});
