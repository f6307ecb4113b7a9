// `${{ expression }}` holes in strings and structures.

import type { Json } from '../exact-json.ts';
import type { Expression, Scope } from './expression.ts';

/** Text with holes; every hole's value is turned into text. */
export interface TextTemplate {
  readonly source: string;
  readonly parts: readonly (string | Expression)[];
  readonly reads: ReadonlySet<string>;
  /** @throws EvaluationFault when a hole can't be evaluated, is empty, or gives a list or map. */
  render(scope: Scope): string;
}

/** A structure whose strings may hold holes; a string that is one hole keeps the value's type. */
export interface ValueTemplate {
  readonly reads: ReadonlySet<string>;
  /** Members whose hole is an empty optional are left out. @throws EvaluationFault */
  render(scope: Scope): Json | undefined;
}
