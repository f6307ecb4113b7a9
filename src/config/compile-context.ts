// What compiling one adapter file shares: where problems go, the driver's format, and the compiler of one place.

import { isAbsolute, resolve } from 'node:path';
import type { Problem } from '../errors.ts';
import type { Json } from '../exact-json.ts';
import type { Compiler, DriverFormat, Path } from './driver-format.ts';
import {
  brokenExpression,
  type CompileOptions,
  compileExpression,
  type Expression,
  type ExpressionProblem,
  type Want,
} from './expression.ts';
import type { Names, Shape } from './expression-names.ts';
import { compileText, compileValue, foreignHole, type TextTemplate, type ValueTemplate } from './template.ts';
import type { YamlSource } from './yaml.ts';

interface Report {
  hint?: string | undefined;
  /** Point at the key instead of the value. */
  key?: boolean;
  offset?: number;
}

export interface FileContext {
  source: YamlSource;
  format: DriverFormat;
  /** What an unwanted reply says, for steps that don't say it themselves. */
  reason: Expression | undefined;
  env: Shape;
  secrets: Shape;
  /** The upstream's own credentials; they may be read where secrets may. */
  credentials: Names;
  /** Every name that any expression of the file reads. */
  reads: Set<string>;
  problem(path: Path, message: string, report?: Report): void;
  warning(path: Path, message: string, report?: Report): void;
  /** A file named in the adapter, relative to the adapter's folder. */
  file(path: string): string;
}

export function fileContext(
  source: YamlSource,
  format: DriverFormat,
  variables: { env: Shape; secrets: Shape },
  folder: string,
  found: { problems: Problem[]; warnings: Problem[] },
): FileContext {
  return {
    source,
    format,
    reason: undefined,
    ...variables,
    credentials: {},
    reads: new Set(),
    problem: (path, message, report) => found.problems.push(source.problem(path, message, report)),
    warning: (path, message, report) => found.warnings.push(source.problem(path, message, report)),
    file: (path) => (isAbsolute(path) ? path : resolve(folder, path)),
  };
}

/** One place of the file: what may be read there, and how much it may give. */
export interface Place {
  /** Without secrets. */
  names: Names;
  /** Names that only what is sent may read, beside secrets. */
  sent?: Names | undefined;
  /** Names tested by the `when` of the same step. */
  present?: ReadonlySet<string>;
  maxBytes?: number | undefined;
}

/** Compiles single fields; everything it compiles adds to `reads`. */
export interface PlaceCompiler {
  reads: Set<string>;
  /** The same place with more names; what it compiles adds to `reads` too. */
  with(more: { sent: Names; reply: Names }): PlaceCompiler;
  expression(path: Path, source: string, options?: { want?: Want; resolveUrl?: boolean }): Tested;
  text(path: Path, source: string, options?: { secrets?: boolean; offset?: number }): TextTemplate;
  value(path: Path, raw: Json, options?: { secrets?: boolean }): ValueTemplate;
}

interface Tested {
  expression: Expression;
  /** Names that are sure to be there when the expression is true. */
  tested: ReadonlySet<string>;
}

export function placeCompiler(
  context: FileContext,
  place: Place,
  reads: Set<string> = new Set(),
): PlaceCompiler {
  const withSecrets: Names = {
    ...place.names,
    secrets: context.secrets,
    ...context.credentials,
    ...place.sent,
  };
  const options = (secrets: boolean | undefined): CompileOptions => ({
    names: secrets ? withSecrets : place.names,
    present: place.present,
    maxBytes: place.maxBytes,
  });
  const note = (names: ReadonlySet<string>): void => {
    for (const name of names) {
      reads.add(name);
      context.reads.add(name);
    }
  };
  const reportAll = (path: Path, problems: readonly ExpressionProblem[], shift = 0): void => {
    for (const { message, hint, offset } of problems)
      context.problem(path, message, { hint, offset: offset + shift });
  };
  const warnForeign = (path: Path, raw: Json, shift = 0): void => {
    if (typeof raw === 'string') {
      const offset = foreignHole(raw);
      const hint = `a hole is written $${'{{ … }}'}`;
      if (offset !== -1) context.warning(path, 'this is sent as it stands', { hint, offset: offset + shift });
    } else if (Array.isArray(raw))
      for (const [index, item] of raw.entries()) warnForeign([...path, index], item);
    else if (typeof raw === 'object' && raw !== null)
      for (const [key, item] of Object.entries(raw)) warnForeign([...path, key], item);
  };
  return {
    reads,
    with: ({ sent, reply }) => {
      const names = { ...place.names, ...reply };
      return placeCompiler(context, { ...place, names, sent: { ...place.sent, ...sent } }, reads);
    },
    expression(path, source, { want, resolveUrl } = {}) {
      const { expression, problems, tested } = compileExpression(source, {
        ...options(false),
        want,
        resolveUrl,
      });
      if (source.startsWith('$' + '{{')) {
        const hint = 'this field is an expression already: write it without the marks';
        context.problem(path, 'holes are for text', { hint });
      } else reportAll(path, problems);
      if (expression) note(expression.reads);
      return { expression: expression ?? brokenExpression(source), tested };
    },
    text(path, source, { secrets, offset } = {}) {
      const { template, problems } = compileText(source, options(secrets));
      reportAll(path, problems, offset);
      warnForeign(path, source, offset);
      note(template.reads);
      return template;
    },
    value(path, raw, { secrets } = {}) {
      const { template, problems } = compileValue(raw, options(secrets));
      for (const problem of problems) reportAll([...path, ...problem.path], [problem]);
      warnForeign(path, raw);
      note(template.reads);
      return template;
    },
  };
}

/** The compiler handed to a driver's format for the fields of the object at `base`. */
export function driverCompiler(
  context: FileContext,
  base: Path,
  place: PlaceCompiler,
  afterReply?: (names: Names) => PlaceCompiler,
): Compiler {
  return {
    within: (path, { sent = {}, reply = {} } = {}) =>
      driverCompiler(context, [...base, ...path], place.with({ sent, reply })),
    afterReply: (names = {}) => driverCompiler(context, base, afterReply?.(names) ?? place),
    expression: (path, source, want) =>
      place.expression([...base, ...path], source, want === undefined ? {} : { want }).expression,
    text: (path, source, options = {}) =>
      place.text([...base, ...path], source, { ...options, secrets: options.secrets ?? true }),
    value: (path, raw) => place.value([...base, ...path], raw, { secrets: true }),
    file: context.file,
    problem: (path, message, hint) => context.problem([...base, ...path], message, { hint }),
  };
}
