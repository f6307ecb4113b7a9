// CEL behind one small interface: compiled once with its guards, evaluated over named roots.

import type { Json } from '../exact-json.ts';

/** Root names and their values: args, job, task, confirm, env, secrets, response, answer. */
export type Scope = { readonly [root: string]: Json | undefined };

export interface Expression {
  readonly source: string;
  /** CEL type found by the checker, for example `string`, `bool`, `dyn`. */
  readonly type: string;
  /** Dotted names the expression reads: `args.owner`, `job.id`, `response`. */
  readonly reads: ReadonlySet<string>;
  /**
   * @returns the value as exact JSON; `undefined` for an empty optional.
   * @throws EvaluationFault when the expression can't be evaluated over `scope`.
   */
  evaluate(scope: Scope): Json | undefined;
}

/** An expression that failed on the data it was given; the message names no secret. */
export class EvaluationFault extends Error {
  override readonly name = 'EvaluationFault';
}
