// What a result says of replies that were not read whole.

import type { Scope } from '../config/expression.ts';
import type { Json, JsonObject } from '../exact-json.ts';

/** One line for each reply at hand of which something is missing; empty when there is none. */
export function cutNotes(scope: Scope): readonly string[] {
  const fetched = isMap(scope.fetched) ? Object.values(scope.fetched).flat() : [];
  // The last reply is among them by name as well.
  const replies = new Set([scope.response, ...fetched]);
  return [...new Set([...replies].filter(isMap).filter(isCut).map(noteOf))];
}

function isCut({ truncated }: JsonObject): boolean {
  return truncated === true;
}

function noteOf({ body, bytes }: JsonObject): string {
  if (Array.isArray(body)) return `(cut: the upstream has more than the ${body.length} items that are kept)`;
  const kept = typeof body === 'string' ? Buffer.byteLength(body) : undefined;
  if (kept === undefined) return '(cut: a part of what the upstream has is missing)';
  return typeof bytes === 'bigint'
    ? `(cut: ${bytes} bytes, ${kept} are kept)`
    : `(cut: the upstream has more than the ${kept} bytes that are kept)`;
}

function isMap(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
