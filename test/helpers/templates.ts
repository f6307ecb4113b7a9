// Templates and expressions for tests that don't go through the YAML loader.

import { EvaluationFault, type Expression, type Scope } from '../../src/config/expression.ts';
import type { TextTemplate, ValueTemplate } from '../../src/config/template.ts';
import type { Json } from '../../src/exact-json.ts';

/** An expression that reads a dotted path, such as `job.id`. A missing member is a fault. */
function read(source: string): Expression {
  const evaluate = (scope: Scope): Json | undefined => {
    let value: Json | undefined = scope as { [root: string]: Json };
    for (const name of source.split('.')) {
      if (
        value === null ||
        typeof value !== 'object' ||
        Array.isArray(value) ||
        !Object.hasOwn(value, name)
      ) {
        throw new EvaluationFault(`no such key: ${name}`);
      }
      value = value[name];
    }
    return value;
  };
  return { source, type: 'dyn', reads: new Set([source]), evaluate };
}

/** Tagged template: text`/jobs/${'job.id'}/log`; each hole is a dotted path or an expression. */
export function text(fixed: TemplateStringsArray, ...holes: (string | Expression)[]): TextTemplate {
  const parts = fixed.flatMap((piece, index): (string | Expression)[] => {
    const hole = holes[index];
    const expression = typeof hole === 'string' ? read(hole) : hole;
    return [...(piece === '' ? [] : [piece]), ...(expression === undefined ? [] : [expression])];
  });
  return {
    source: parts.map((part) => (typeof part === 'string' ? part : `\${{ ${part.source} }}`)).join(''),
    parts,
    reads: new Set(parts.flatMap((part) => (typeof part === 'string' ? [] : [...part.reads]))),
    render: (scope) =>
      parts.map((part) => (typeof part === 'string' ? part : holeText(part, scope))).join(''),
  };
}

/** Text without holes. */
export function fixed(value: string): TextTemplate {
  return { source: value, parts: value === '' ? [] : [value], reads: new Set(), render: () => value };
}

/** A structure that a function computes; `reads` are the names it reads. */
export function value(render: (scope: Scope) => Json | undefined, ...reads: string[]): ValueTemplate {
  return { reads: new Set(reads), render };
}

function holeText(expression: Expression, scope: Scope): string {
  const result = expression.evaluate(scope);
  if (result === undefined || result === null || result === '' || typeof result === 'object') {
    throw new EvaluationFault(`${expression.source} gives no text`);
  }
  return String(result);
}
