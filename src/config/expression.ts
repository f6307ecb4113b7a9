// CEL behind one small interface: compiled once with its guards, evaluated over named roots.

import type { Environment, ParseResult } from '@marcbachmann/cel-js';
import type { Json } from '../exact-json.ts';
import { engineScope } from './engine-data.ts';
import { tooCostly } from './expression-cost.ts';
import { newEngine, withBaseUrl } from './expression-engine.ts';
import { lintExpression, type NameUse } from './expression-lint.ts';
import { checkingEnvironment, type Names, readsSecret } from './expression-names.ts';
import { normalise, ResultTooLarge, UnusableValue } from './expression-value.ts';
import { defaultValueBytes } from './limits.ts';

/** Root names and their values: args, job, task, confirm, env, secrets, login, jwt, response, fetched, item, answer. */
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

/** The type that a place needs; `dyn` always passes, since it is only known at run time. */
export type Want = 'bool' | 'string' | 'int' | 'list';

export interface CompileOptions {
  /** What may be read at this place. */
  names: Names;
  want?: Want | undefined;
  /** Most bytes of the value, written as JSON. Default 256 KiB. */
  maxBytes?: number | undefined;
  /** Whether `resolveUrl` may be used: only in captures, where `response.url` is the request's own URL. */
  resolveUrl?: boolean | undefined;
  /** Dotted names that are certain here because a `when` tested them with `has()`. */
  present?: ReadonlySet<string> | undefined;
}

export interface ExpressionProblem {
  /** Index into the source, from 0. */
  offset: number;
  message: string;
  hint?: string;
}

export interface CompiledExpression {
  /** Undefined when there are problems. */
  expression: Expression | undefined;
  problems: readonly ExpressionProblem[];
  /** Dotted names that are sure to be there when the expression is true, as it tests them with `has()`. */
  tested: ReadonlySet<string>;
}

/**
 * Compiles one CEL expression: syntax, guards, names and types are checked here, so that at run time only the
 * data can be wrong. Never throws.
 */
export function compileExpression(source: string, options: CompileOptions): CompiledExpression {
  const failed = (
    problems: ExpressionProblem[],
    tested: ReadonlySet<string> = new Set(),
  ): CompiledExpression => ({
    expression: undefined,
    problems,
    tested,
  });
  if (source.trim() === '') return failed([{ offset: 0, message: 'the expression is empty' }]);

  let program: ParseResult;
  try {
    program = runEnvironment().parse(source);
  } catch (error) {
    return failed([celProblem(error, source)]);
  }
  const use = lintExpression(program.ast, options);
  if (use.problems.length > 0) return failed(use.problems, use.tested);

  const checked = checkingEnvironment(options.names, use.whole).check(source);
  if (!checked.valid) return failed([celProblem(checked.error, source)], use.tested);
  const type = checked.type ?? 'dyn';
  const misfit = options.want === undefined ? undefined : typeMisfit(type, options.want);
  if (misfit) return failed([misfit], use.tested);

  return {
    expression: runnable(source, type, use, program, options.maxBytes),
    problems: [],
    tested: use.tested,
  };
}

/** An expression that always faults; stands in for one that did not compile, so that loading can go on. */
export function brokenExpression(source: string): Expression {
  return {
    source,
    type: 'dyn',
    reads: new Set(),
    evaluate: () => {
      throw new EvaluationFault(`\`${shortened(source)}\` did not compile`);
    },
  };
}

let environment: Environment | undefined;

/** All roots are dynamic at run time: types were checked at load time, and data is what it is. */
function runEnvironment(): Environment {
  environment ??= newEngine({ anyName: true });
  return environment;
}

function runnable(
  source: string,
  type: string,
  use: NameUse,
  program: ParseResult,
  maxBytes = defaultValueBytes,
): Expression {
  // A fault of the engine may quote the data it met; where that may be a secret, only the code is told.
  const hideData = readsSecret(use.reads);
  return {
    source,
    type,
    reads: use.reads,
    evaluate(scope) {
      if (tooCostly(program.ast, scope))
        throw new EvaluationFault(`the data is too large for what is made of it in \`${shortened(source)}\``);
      try {
        const value: unknown = withBaseUrl(baseUrl(scope), () =>
          withoutStacks(() => program(engineScope(scope))),
        );
        return normalise(value, maxBytes);
      } catch (error) {
        throw new EvaluationFault(`${faultText(error, hideData)} in \`${shortened(source)}\``);
      }
    },
  };
}

/** The engine makes an Error of every fault, also of those it absorbs by the thousand; stacks take most of the time. */
function withoutStacks<T>(run: () => T): T {
  const before = Error.stackTraceLimit;
  Error.stackTraceLimit = 0;
  try {
    return run();
  } finally {
    Error.stackTraceLimit = before;
  }
}

function baseUrl(scope: Scope): string | undefined {
  const response = scope.response;
  if (typeof response !== 'object' || response === null || Array.isArray(response)) return undefined;
  return typeof response.url === 'string' ? response.url : undefined;
}

function faultText(error: unknown, hideData: boolean): string {
  if (error instanceof ResultTooLarge || error instanceof UnusableValue) return error.message;
  const { code, summary } = celFields(error);
  if (hideData) return code ?? 'failed';
  return summary.slice(0, 200);
}

function celFields(error: unknown): { code: string | undefined; summary: string; start: number | undefined } {
  if (!(error instanceof Error)) return { code: undefined, summary: String(error), start: undefined };
  const fields = error as Error & { code?: unknown; summary?: unknown; range?: { start?: unknown } };
  return {
    code: typeof fields.code === 'string' ? fields.code : undefined,
    summary: typeof fields.summary === 'string' ? fields.summary : error.message,
    start: typeof fields.range?.start === 'number' ? fields.range.start : undefined,
  };
}

function celProblem(error: unknown, source: string): ExpressionProblem {
  const { code, summary, start } = celFields(error);
  const problem: ExpressionProblem = {
    offset: Math.min(start ?? 0, source.length),
    message: plainTypes(summary),
  };
  const hint = celHint(code, summary);
  if (hint !== undefined) problem.hint = hint;
  return problem;
}

function celHint(code: string | undefined, summary: string): string | undefined {
  if (summary.includes('optional<')) return 'an optional value needs .orValue(default) before it is used';
  if (code === 'no_such_overload' && /: (string \+|.* \+ string)/.test(summary))
    return 'join text with string(x), or write it as a template';
  if (code === 'no_such_overload' && summary.includes(' == ')) return 'the two sides have different types';
  if (code === 'incompatible_ternary_branches')
    return 'both results of ? : need one type; use string(x) or dyn(x)';
  if (summary.includes('Unexpected character: =')) return 'equality is written ==';
  if (/'[\w<>, ]+\.(length|len|count)\(\)'/.test(summary)) return 'write size(x)';
  return undefined;
}

/** Names of generated types are no use to a reader. */
function plainTypes(text: string): string {
  return text.replace(/\$(\w+)/g, 'map');
}

function typeMisfit(type: string, want: Want): ExpressionProblem | undefined {
  if (type === 'dyn' || type === want || type.startsWith(`${want}<`)) return undefined;
  const words: { [type in Want]: string } = {
    bool: 'true or false',
    string: 'text',
    int: 'a whole number',
    list: 'a list',
  };
  const problem: ExpressionProblem = { offset: 0, message: `gives ${type}, but ${words[want]} is wanted` };
  if (type.startsWith('optional')) problem.hint = 'add .orValue(default)';
  else if (want === 'bool')
    problem.hint = 'there is no truthiness: compare it, for example x != "" or size(x) > 0';
  else if (want === 'string') problem.hint = 'wrap it in string(…)';
  return problem;
}

function shortened(source: string): string {
  const line = source.replace(/\s+/g, ' ').trim();
  return line.length > 80 ? `${line.slice(0, 77)}…` : line;
}
