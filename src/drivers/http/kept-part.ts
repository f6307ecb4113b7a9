// One end of a body of any length: never holds more than what is kept and the piece that just came.

export interface Keep {
  end: 'head' | 'tail';
  /** Most bytes that are kept. */
  bytes: number;
}

export interface KeptPart {
  /** @returns false when nothing that follows is wanted. */
  push(chunk: Buffer): boolean;
  result(): Kept;
}

export interface Kept {
  /** The first or last bytes. */
  bytes: Buffer;
  /** Bytes that came. */
  seen: number;
  /** They are all there are: the end was reached. */
  complete: boolean;
  /** Something was left out. */
  cut: boolean;
  /** A cut tail starts where a line starts. */
  lineStart: boolean;
}

export function keepPart({ end, bytes: most }: Keep): KeptPart {
  // One byte more than is kept: it tells whether anything is left out, and whether the tail starts a line.
  const limit = most + 1;
  const chunks: Buffer[] = [];
  let held = 0;
  let seen = 0;
  return {
    push(chunk) {
      if (end === 'head') {
        if (held >= limit) return false;
        seen += chunk.length;
        chunks.push(chunk.subarray(0, limit - held));
        held = Math.min(limit, held + chunk.length);
        return held < limit;
      }
      seen += chunk.length;
      chunks.push(chunk);
      held += chunk.length;
      for (let first = chunks[0]; first !== undefined && held - first.length >= limit; first = chunks[0]) {
        held -= first.length;
        chunks.shift();
      }
      return true;
    },
    result() {
      const all = Buffer.concat(chunks);
      const cut = all.length > most;
      if (!cut) return { bytes: all, seen, complete: true, cut, lineStart: true };
      if (end === 'head')
        return { bytes: all.subarray(0, most), seen, complete: false, cut, lineStart: true };
      const from = all.length - most;
      return { bytes: all.subarray(from), seen, complete: true, cut, lineStart: all[from - 1] === 10 };
    },
  };
}
