// Templates as an adapter would write them, for tests that don't go through the YAML loader.

import type { Names } from '../../src/config/expression-names.ts';
import {
  compileText,
  compileValue,
  type TextTemplate,
  type ValueTemplate,
} from '../../src/config/template.ts';
import type { Json } from '../../src/exact-json.ts';

const names: Names = Object.fromEntries(
  ['args', 'job', 'task', 'confirm', 'env', 'secrets', 'response', 'item'].map((root) => [
    root,
    { kind: 'any' },
  ]),
);

/** Tagged template: text`/jobs/${'job.id'}/log`; each hole is an expression. */
export function text(literal: TemplateStringsArray, ...holes: string[]): TextTemplate {
  const source = literal.map((piece, index) =>
    index < holes.length ? `${piece}\${{ ${holes[index]} }}` : piece,
  );
  return fixed(source.join(''));
}

/** Text as it stands in the file. */
export function fixed(source: string): TextTemplate {
  return sound(compileText(source, { names }));
}

/** A structure as it stands in the file. */
export function value(raw: Json): ValueTemplate {
  return sound(compileValue(raw, { names }));
}

function sound<T>({ template, problems }: { template: T; problems: readonly { message: string }[] }): T {
  const [problem] = problems;
  if (problem !== undefined) throw new Error(problem.message);
  return template;
}
