// Equality of plain data, as the store would see it.

/** Deep equality of plain data; a member that is undefined equals one that is absent, as in stored JSON. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const left = a as { [key: string]: unknown };
  const right = b as { [key: string]: unknown };
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    if (!sameJson(own(left, key), own(right, key))) return false;
  }
  return true;
}

function own(object: { [key: string]: unknown }, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}
