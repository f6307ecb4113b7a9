// Compiling where an upstream tells its limits.

import type { Compiler } from '../../config/driver-format.ts';
import { checkHeaderName } from './compile-headers.ts';
import type { RateLimitNames } from './rate-limit.ts';
import type { RawUpstream } from './shape.ts';

export function compileRateLimit(
  raw: RawUpstream['rateLimit'],
  compiler: Compiler,
): readonly RateLimitNames[] {
  const list = raw === undefined ? [] : Array.isArray(raw) ? raw : [raw];
  return list.map(({ remaining, reset, resetAs }, index) => {
    const at = Array.isArray(raw) ? ['rateLimit', index] : ['rateLimit'];
    checkHeaderName(remaining, [...at, 'remaining'], compiler);
    checkHeaderName(reset, [...at, 'reset'], compiler);
    return { remaining: remaining.toLowerCase(), reset: reset.toLowerCase(), resetAs };
  });
}
