// Which part of the whole a reply to a Range request holds (RFC 9110, section 14.4).

export interface Part {
  /** Index of the first byte. */
  from: number;
  /** Index after the last byte. */
  to: number;
  /** Bytes of the whole; undefined when the upstream doesn't know. */
  total: number | undefined;
}

/** @returns undefined when `value` names no part in bytes. */
export function contentRange(value: string | undefined): Part | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(value?.trim() ?? '');
  if (match === null) return undefined;
  const [, first, last, whole] = match;
  const from = Number(first);
  const to = Number(last) + 1;
  return to <= from ? undefined : { from, to, total: whole === '*' ? undefined : Number(whole) };
}
