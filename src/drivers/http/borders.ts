// Where a text that is too long may be cut: at a line's border, or between characters in a line that is very long.

/** A line's border is looked for this far from the cut; what is longer is cut in the middle of the line. */
const lineWindow = 4096;

export interface CutRule {
  /** Only whole lines are of use: what has none is cut to nothing. */
  wholeLines: boolean;
  /** Line ends between quotes are no border (CSV). */
  quoted: boolean;
}

/** @param bytes starts where the text starts and goes on beyond what is given here. */
export function cutEnd(bytes: Buffer, rule: CutRule): Buffer {
  const at = rule.quoted ? lastRowEnd(bytes) : bytes.lastIndexOf(10) + 1;
  if (rule.wholeLines || (at > 0 && bytes.length - at < lineWindow)) return bytes.subarray(0, at);
  return bytes.subarray(0, wholeCharacters(bytes));
}

/** @param bytes ends where the text ends, or is cut there by somebody else; its first line may be a part of one. */
export function cutStart(bytes: Buffer, rule: CutRule): Buffer {
  const at = bytes.indexOf(10) + 1;
  const found = at > 0 && at < bytes.length;
  if (rule.wholeLines) return bytes.subarray(found ? at : bytes.length);
  if (found && at <= lineWindow) return bytes.subarray(at);
  let start = 0;
  while (start < 3 && continues(bytes[start])) start++;
  return bytes.subarray(start);
}

/** A byte in the middle of a UTF-8 character. */
function continues(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** How many bytes hold whole UTF-8 characters. */
function wholeCharacters(bytes: Buffer): number {
  let start = bytes.length - 1;
  while (start > 0 && bytes.length - start < 4 && continues(bytes[start])) start--;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + length > bytes.length ? Math.max(start, 0) : bytes.length;
}

/** Index after the last line end that stands outside quotes: there the number of quotes so far is even. */
function lastRowEnd(bytes: Buffer): number {
  let end = 0;
  let inside = false;
  for (let at = 0; at < bytes.length; at++) {
    if (bytes[at] === 34) inside = !inside;
    else if (bytes[at] === 10 && !inside) end = at + 1;
  }
  return end;
}
