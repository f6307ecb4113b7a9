// How deep and how large a JSON value from a client may be, measured without recursion.

export interface Size {
  /** Levels of lists and maps. */
  depth: number;
  /** Lists, maps and what they hold. */
  values: number;
}

/** Stops counting once `limit` is passed in either way. */
export function sizeOf(value: unknown, limit: Size): Size {
  let values = 0;
  let depth = 0;
  let level: unknown[] = [value];
  while (level.length > 0) {
    values += level.length;
    const next: unknown[] = [];
    for (const member of level) {
      if (typeof member === 'object' && member !== null)
        for (const inner of Object.values(member)) next.push(inner);
    }
    if (level.some((member) => typeof member === 'object' && member !== null)) depth += 1;
    if (depth > limit.depth || values > limit.values) break;
    level = next;
  }
  return { depth, values };
}
