// Compiling how a step reads its reply: the kind of body, what is kept of a long one, redirects.

import type { Compiler } from '../../config/driver-format.ts';
import type { TextTemplate } from '../../config/template.ts';
import { parseSize } from '../../config/units.ts';
import type { HttpStep } from './compiled.ts';
import { mostWildcards, wildcardsIn } from './entry-pattern.ts';
import type { Keep } from './kept-part.ts';
import { mostRedirects } from './redirects.ts';
import type { RawStep } from './shape.ts';

const largestKept = 16 * 1024 * 1024;

export function compileReading(
  raw: RawStep,
  method: HttpStep['method'],
  compiler: Compiler,
): Pick<HttpStep, 'read' | 'unzip' | 'keep' | 'redirects' | 'etag'> {
  if (method === 'HEAD' && raw.read !== undefined && raw.read !== 'none')
    compiler.problem(['read'], 'the reply to a HEAD request has no body');
  const read = raw.read ?? (method === 'HEAD' ? 'none' : 'json');
  return {
    read,
    unzip: compileUnzip(raw.unzip, read, compiler),
    keep: raw.keep && compileKeep(raw.keep, read, compiler),
    redirects: compileRedirects(raw.redirects, compiler),
    etag: compileEtag(raw, method, read, compiler),
  };
}

function compileUnzip(
  raw: string | undefined,
  read: HttpStep['read'],
  compiler: Compiler,
): TextTemplate | undefined {
  if (raw === undefined) return undefined;
  if (raw === '') compiler.problem(['unzip'], 'names no entry', 'for example "*.txt"');
  if (read === 'none') compiler.problem(['unzip'], 'the body is not read, as read is none');
  const template = compiler.text(['unzip'], raw, { secrets: false });
  if (wildcardsIn(template) > mostWildcards)
    compiler.problem(['unzip'], `has more than ${mostWildcards} wildcards`);
  return template;
}

function compileKeep(
  raw: NonNullable<RawStep['keep']>,
  read: HttpStep['read'],
  compiler: Compiler,
): Keep | undefined {
  const [end, second] = (['head', 'tail'] as const).filter((name) => raw[name] !== undefined);
  if (end === undefined || second !== undefined) {
    compiler.problem(['keep'], 'must hold exactly one of head, tail', 'for example { tail: 64KiB }');
    return undefined;
  }
  if (read === 'csv' && end === 'tail')
    compiler.problem(['keep', 'tail'], 'the end of a CSV file lacks its column names', 'use head');
  else if (read !== 'text' && read !== 'jsonl' && read !== 'csv')
    compiler.problem(['keep'], `only text can be cut, and read is ${read}`, 'set read to text, jsonl or csv');
  const bytes = parseSize(raw[end] ?? '') ?? 0;
  if (bytes < 1 || bytes > largestKept)
    compiler.problem(['keep', end], 'must be more than nothing and at most 16MiB');
  return { end, bytes };
}

function compileRedirects(raw: number | undefined, compiler: Compiler): number {
  const redirects = raw ?? 0;
  if (!Number.isInteger(redirects) || redirects < 0 || redirects > mostRedirects)
    compiler.problem(['redirects'], `must be a whole number from 0 to ${mostRedirects}`);
  return redirects;
}

function compileEtag(
  raw: RawStep,
  method: HttpStep['method'],
  read: HttpStep['read'],
  compiler: Compiler,
): boolean {
  if (raw.etag !== true) return false;
  if (method !== 'GET') compiler.problem(['etag'], 'only the reply to a GET is remembered');
  else if (read === 'none') compiler.problem(['etag'], 'there is nothing to remember, as read is none');
  if (raw.keep !== undefined)
    compiler.problem(['etag'], "can't stand beside keep: only whole replies are remembered");
  const own = Object.keys(raw.headers ?? {}).find((name) => /^(if-|range$)/i.test(name));
  if (own !== undefined)
    compiler.problem(['headers', own], 'makes the request conditional itself', 'remove it, or etag');
  return true;
}
