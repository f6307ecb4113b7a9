// A bound on loops that read data from outside of the loop: there the cost is a product, not a sum.

import type { Json } from '../exact-json.ts';
import type { Scope } from './expression.ts';

export interface LoopUse {
  /** Names from outside that are read inside a loop, as far as they are written out. */
  outer: readonly (readonly string[])[];
  /** Roots that the expression reads, so that a loop may run over them. */
  roots: readonly string[];
  /** Text is cut into lists, so that a loop may run over characters. */
  splits: boolean;
}

/** Steps that took about a quarter of a second when measured. */
const mostSteps = 10_000_000;

/** Whether the loops could take more than {@link mostSteps} steps over `scope`. */
export function tooCostly(use: LoopUse, scope: Scope): boolean {
  if (use.outer.length === 0) return false;
  const inside = sum(use.outer.map((path) => weight(valueAt(scope, path), 1 / 16)));
  if (inside <= use.outer.length) return false;
  const turns = sum(use.roots.map((root) => weight(scope[root], use.splits ? 1 : 0)));
  return inside * turns > mostSteps;
}

/** Values in a structure, and its characters times `perCharacter`. */
function weight(value: Json | undefined, perCharacter: number): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length * perCharacter);
  if (typeof value !== 'object' || value === null) return 1;
  let total = 1;
  for (const item of Array.isArray(value) ? value : Object.values(value)) total += weight(item, perCharacter);
  return total;
}

function valueAt(scope: Scope, path: readonly string[]): Json | undefined {
  let current: Json | undefined = { ...scope } as { [root: string]: Json };
  for (const name of path) {
    if (typeof current !== 'object' || current === null || Array.isArray(current)) return undefined;
    current = Object.hasOwn(current, name) ? current[name] : undefined;
  }
  return current;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
