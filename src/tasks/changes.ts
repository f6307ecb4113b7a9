// Who is told when a client-visible part of a task changes: listen streams and waiting calls of this process.

import type { StoredTask } from '../stores/store.ts';
import { refKey, type TaskRef } from './task.ts';

export type Listener = (stored: StoredTask) => void;

export interface Changes {
  /** @returns the function that ends the subscription. */
  subscribe(ref: TaskRef, listener: Listener): () => void;
  publish(stored: StoredTask): void;
}

/** @param onFault told of a listener that threw: the others hear of the change all the same. */
export function createChanges(onFault: (error: unknown) => void = () => {}): Changes {
  const listeners = new Map<string, Set<Listener>>();
  return {
    subscribe(ref, listener) {
      const key = refKey(ref);
      const set = listeners.get(key) ?? new Set();
      listeners.set(key, set.add(listener));
      return () => {
        set.delete(listener);
        if (set.size === 0 && listeners.get(key) === set) listeners.delete(key);
      };
    },
    publish(stored) {
      for (const listener of listeners.get(refKey(stored.task)) ?? []) {
        try {
          listener(stored);
        } catch (error) {
          onFault(error);
        }
      }
    },
  };
}
