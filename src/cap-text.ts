// Text for people is capped by code points, so that no character is cut in half.

/** Longest statusMessage, in code points. */
export const messageLimit = 500;

/** At most `limit` code points; what is cut ends with "…". */
export function capText(text: string, limit: number): string {
  // A code point has at most two code units, so only a text longer than the limit has to be looked at.
  if (text.length <= limit) return text;
  let kept = '';
  let left = limit;
  let last = '';
  for (const point of text) {
    if (left === 0) return limit > 0 ? `${kept}…` : '';
    kept += last;
    last = point;
    left--;
  }
  return text;
}
