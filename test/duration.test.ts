import { expect, it } from 'vitest';
import { formatDuration } from '../src/duration.ts';

it('writes a duration in its largest whole unit', () => {
  expect([100, 90_000, 3_600_000, 0].map(formatDuration)).toEqual(['100ms', '90s', '1h', '0ms']);
});
