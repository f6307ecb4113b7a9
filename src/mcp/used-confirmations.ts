// A confirmation of a plain tool counts once: a replay of its requestState must not make the call again.

import type { Clock } from '../clock.ts';
import { stateSeconds } from './confirm.ts';

export interface UsedConfirmations {
  /** @returns false when the confirmation was used before. */
  use(nonce: string): boolean;
}

/** Beyond this the oldest are forgotten early. */
const mostKept = 100_000;

/** Kept for as long as a requestState is valid, in this process: after a restart one may be used once more. */
export function createUsedConfirmations(clock: Pick<Clock, 'monotonic'>): UsedConfirmations {
  /** When each may be forgotten; in that order. */
  const used = new Map<string, number>();
  return {
    use(nonce) {
      const now = clock.monotonic();
      for (const [known, until] of used) {
        if (until > now) break;
        used.delete(known);
      }
      if (used.has(nonce)) return false;
      if (used.size >= mostKept) used.delete(used.keys().next().value ?? '');
      used.set(nonce, now + stateSeconds * 1_000);
      return true;
    },
  };
}
