// Requests that only read, so that making one again does no harm.

import type { HttpStep } from './compiled.ts';

/** RFC 9110, section 9.2.1, of the methods that a step may have. */
export function isSafe({ method }: Pick<HttpStep, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD';
}
