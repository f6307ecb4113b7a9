// Text of a single value for a URL, a query or a form; lists, maps and nothing have none.

import type { Json } from '../../exact-json.ts';

/** @returns undefined for null, lists, maps and numbers that are not finite. */
export function scalarText(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'bigint' || typeof value === 'boolean') return String(value);
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : undefined;
}
