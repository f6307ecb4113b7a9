// Compiling headers and other named texts of the HTTP format.

import type { Compiler, Path } from '../../config/driver-format.ts';
import { hasHole, type TextTemplate, type ValueTemplate } from '../../config/template.ts';
import type { Json } from '../../exact-json.ts';
import type { HeaderSource, NamedText } from './compiled.ts';
import { headerNameFault, headerValueFault } from './header-rules.ts';

export function compileHeaders(
  raw: { [name: string]: string } | string | undefined,
  path: Path,
  compiler: Compiler,
): readonly HeaderSource[] {
  if (typeof raw === 'string') {
    const map = compileMap(raw, path, compiler);
    return map === undefined ? [] : [{ map }];
  }
  const seen = new Map<string, string>();
  return Object.entries(raw ?? {}).map(([name, value]) => {
    const at = [...path, name];
    checkHeaderName(name, at, compiler);
    const twin = seen.get(name.toLowerCase());
    if (twin !== undefined) compiler.problem(at, `is the same header as ${twin}`);
    seen.set(name.toLowerCase(), name);
    return { name, value: compileHeaderValue(value, at, compiler) };
  });
}

export function checkHeaderName(name: string, path: Path, compiler: Compiler): void {
  const fault = headerNameFault(name);
  if (fault !== undefined) compiler.problem(path, fault);
}

/** What the holes give is only known when they are filled in; the text around them is checked here. */
export function compileHeaderValue(value: string, path: Path, compiler: Compiler): TextTemplate {
  const text = compiler.text(path, value);
  checkHeaderValue(text.parts.filter((part) => typeof part === 'string').join(''), path, compiler);
  return text;
}

export function checkHeaderValue(value: string, path: Path, compiler: Compiler): void {
  const fault = headerValueFault(value);
  if (fault !== undefined) compiler.problem(path, fault);
}

export function namedTexts(
  raw: { [name: string]: string } | undefined,
  path: Path,
  compiler: Compiler,
): readonly NamedText[] {
  return Object.entries(raw ?? {}).map(([name, value]) => ({
    name,
    value: compiler.text([...path, name], value),
  }));
}

/** A map with holes, or one hole that gives a map. */
export function compileMap(raw: unknown, path: Path, compiler: Compiler): ValueTemplate | undefined {
  if (raw === undefined) return undefined;
  const oneHole = typeof raw === 'string' && hasHole(raw);
  const map = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
  if (!oneHole && !map) compiler.problem(path, 'must be a map, or a hole that gives a map');
  // The file was read as JSON values only.
  return compiler.value(path, raw as Json);
}
