// Compiling a step of an HTTP adapter: request line, query, headers, body.

import type { Compiler } from '../../config/driver-format.ts';
import type { Json } from '../../exact-json.ts';
import { compileAuth } from './compile-auth.ts';
import { checkHeaderValue, compileHeaders } from './compile-headers.ts';
import { compileMap } from './compile-map.ts';
import { compilePages } from './compile-pages.ts';
import { compileReading } from './compile-reading.ts';
import type { HttpBody, HttpStep, HttpTarget, MultipartPart } from './compiled.ts';
import type { RawStep } from './shape.ts';

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;

/** Whether the step is one of a login: only there may the file name another host. */
export type StepKind = 'job' | 'login';

export function compileStep(raw: RawStep, compiler: Compiler, kind: StepKind = 'job'): HttpStep {
  const { method, target } = compileRequest(raw.request, kind, compiler);
  const body = compileBody(raw, compiler);
  if (body !== undefined && /^(GET|HEAD)\s/.test(raw.request))
    compiler.problem(['request'], `a ${method} request has no body`, 'use query, or another method');
  const reading = compileReading(raw, method, compiler);
  return {
    method,
    target,
    query: compileMap(raw.query, ['query'], compiler),
    headers: compileHeaders(raw.headers, ['headers'], compiler),
    auth: raw.auth === 'none' ? 'none' : raw.auth && compileAuth(raw.auth, ['auth'], compiler),
    body,
    ...reading,
    pages: compilePages(raw, { method, target, read: reading.read }, compiler),
  };
}

function compileRequest(
  line: string,
  kind: StepKind,
  compiler: Compiler,
): Pick<HttpStep, 'method' | 'target'> {
  const match = /^(\S+)(\s+)(.*)$/s.exec(line);
  const word = match?.[1] ?? line;
  const method = methods.find((name) => name === word);
  if (method === undefined) {
    const upper = methods.find((name) => name === word.toUpperCase());
    if (/^(\/|\$\{\{)/.test(line)) {
      compiler.problem(['request'], 'the method is missing', `write GET ${line} or POST ${line}`);
      return {
        method: 'GET',
        target: { kind: 'path', path: compiler.text(['request'], line, { secrets: false }) },
      };
    }
    compiler.problem(
      ['request'],
      `"${word.slice(0, 20)}" is no request method`,
      upper
        ? `write ${upper}`
        : `write METHOD and target, for example GET /jobs; methods: ${methods.join(', ')}`,
    );
  } else if (match === null) compiler.problem(['request'], 'has no target', `for example ${method} /jobs`);
  const source = (match?.[3] ?? '/').trimEnd();
  const offset = line.length - (match?.[3] ?? '').length;
  return { method: method ?? 'GET', target: compileTarget(source, offset, kind, compiler) };
}

function compileTarget(source: string, offset: number, kind: StepKind, compiler: Compiler): HttpTarget {
  const text = compiler.text(['request'], source, { secrets: false, offset });
  const literal = text.parts.filter((part) => typeof part === 'string').join('');
  if (/[\s\p{Cc}]/u.test(literal)) compiler.problem(['request'], 'the target holds white space', 'write %20');
  if (literal.includes('#'))
    compiler.problem(['request'], 'the target holds a fragment (#…), which is never sent');
  if (literal.includes('\\')) compiler.problem(['request'], 'the target holds a backslash');
  if (kind === 'login' && /^(\$\{\{|https?:\/\/)/i.test(source)) {
    if (text.parts.length === 1 && source === literal) checkFixedUrl(source, compiler);
    return { kind: 'fixed', url: text };
  }
  if (source.startsWith('$' + '{{')) return { kind: 'url', url: text };
  if (/^([a-z][a-z0-9+.-]*:)?\/\//i.test(source))
    compiler.problem(['request'], 'the target names a host', 'write a path under upstream.baseUrl');
  const [path = ''] = literal.split('?');
  if (path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    compiler.problem(['request'], 'the path holds a "." or ".." segment');
  return { kind: 'path', path: text };
}

function checkFixedUrl(source: string, compiler: Compiler): void {
  const url = URL.parse(source);
  if (url === null) compiler.problem(['request'], 'the target is no URL');
  else if (url.username !== '' || url.password !== '')
    compiler.problem(['request'], 'the target holds a user name or password', 'use auth and secrets');
}

function compileBody(raw: RawStep, compiler: Compiler): HttpBody | undefined {
  const kinds = (['json', 'form', 'text', 'multipart'] as const).filter((kind) => raw[kind] !== undefined);
  const second = kinds[1];
  if (second !== undefined)
    compiler.problem([second], `a request has one body, and ${kinds[0]} is there too`);
  // The file was read as JSON values only.
  if (raw.json !== undefined) return { kind: 'json', value: compiler.value(['json'], raw.json as Json) };
  if (raw.form !== undefined) {
    const value = compileMap(raw.form, ['form'], compiler);
    return value && { kind: 'form', value };
  }
  if (raw.text !== undefined) {
    if (typeof raw.text === 'string')
      return {
        kind: 'text',
        value: compiler.text(['text'], raw.text),
        contentType: 'text/plain; charset=utf-8',
      };
    checkHeaderValue(raw.text.contentType, ['text', 'contentType'], compiler);
    return {
      kind: 'text',
      value: compiler.text(['text', 'data'], raw.text.data),
      contentType: raw.text.contentType,
    };
  }
  return raw.multipart && { kind: 'multipart', parts: compileParts(raw.multipart, compiler) };
}

function compileParts(raw: NonNullable<RawStep['multipart']>, compiler: Compiler): MultipartPart[] {
  return Object.entries(raw).map(([name, part]) => {
    const path = ['multipart', name];
    if (typeof part === 'string') return { name, file: undefined, data: compiler.text(path, part) };
    if (part.contentType !== undefined)
      checkHeaderValue(part.contentType, [...path, 'contentType'], compiler);
    if (part.filename === undefined && part.contentType !== undefined)
      compiler.problem([...path, 'contentType'], 'only a file has a media type', 'add filename');
    return {
      name,
      file:
        part.filename === undefined
          ? undefined
          : {
              filename: compiler.text([...path, 'filename'], part.filename),
              contentType: part.contentType ?? 'application/octet-stream',
            },
      data: compiler.text([...path, 'data'], part.data),
    };
  });
}
