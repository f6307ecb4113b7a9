// Compiling headers and other named texts of the HTTP format.

import type { Compiler, Path } from '../../config/driver-format.ts';
import type { NamedText } from './compiled.ts';

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers that belong to the connection or to the body: the transport makes them. */
const ownHeaders = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'upgrade',
  'te',
  'trailer',
  'expect',
  'proxy-authorization',
]);

export function compileHeaders(
  raw: { [name: string]: string } | undefined,
  path: Path,
  compiler: Compiler,
): readonly NamedText[] {
  const seen = new Map<string, string>();
  for (const [name, value] of Object.entries(raw ?? {})) {
    checkHeader(name, value, [...path, name], compiler);
    const twin = seen.get(name.toLowerCase());
    if (twin !== undefined) compiler.problem([...path, name], `is the same header as ${twin}`);
    seen.set(name.toLowerCase(), name);
  }
  return namedTexts(raw, path, compiler);
}

export function checkHeader(name: string, value: string, path: Path, compiler: Compiler): void {
  if (!token.test(name)) compiler.problem(path, `"${name}" is no header name`);
  else if (ownHeaders.has(name.toLowerCase()))
    compiler.problem(path, `the header ${name} is set by taskferry`);
  checkHeaderValue(value, path, compiler);
}

export function checkHeaderValue(value: string, path: Path, compiler: Compiler): void {
  if (/[\r\n\0]/.test(value)) compiler.problem(path, 'a header value is one line');
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
