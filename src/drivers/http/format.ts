// The HTTP driver's part of the adapter format: `upstream:` fields and the fields of a step.

import { z } from 'zod';
import type { Compiler, DriverFormat, Path, StepRole } from '../../config/driver-format.ts';
import { duration, size, strict, structure, template } from '../../config/shape.ts';
import type { TextTemplate, ValueTemplate } from '../../config/template.ts';
import { hasHole } from '../../config/template.ts';
import { parseDuration, parseSize } from '../../config/units.ts';
import type { Json } from '../../exact-json.ts';

export interface HttpUpstream {
  /** Absolute http(s) URL; its path is a prefix of every request. Reads env and secrets only. */
  baseUrl: TextTemplate;
  /** Further hosts (`host`, `host:port`, `*.domain`) that a reply-chosen URL may point at. */
  allowHosts: readonly string[];
  auth: HttpAuth | undefined;
  headers: readonly NamedText[];
  query: readonly NamedText[];
  /** Proxy URL; without it HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process apply. */
  proxy: TextTemplate | undefined;
  /** PEM file of a private certificate authority, trusted beside the system's. Absolute path. */
  ca: string | undefined;
  timeouts: HttpTimeouts;
  /** Most bytes of a reply that is not a result. Default 1 MiB. */
  maxBytes: number;
}

/** All in milliseconds. Defaults: connect 10s, headers 30s, body 30s without a byte. */
export interface HttpTimeouts {
  connect: number;
  headers: number;
  body: number;
}

export type HttpAuth =
  | { kind: 'bearer'; token: TextTemplate }
  | { kind: 'basic'; username: TextTemplate; password: TextTemplate }
  | { kind: 'header'; name: string; value: TextTemplate }
  | { kind: 'query'; name: string; value: TextTemplate };

export interface NamedText {
  name: string;
  value: TextTemplate;
}

export interface HttpStep {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  target: HttpTarget;
  query: ValueTemplate | undefined;
  headers: readonly NamedText[];
  body: HttpBody | undefined;
  read: ReadKind;
}

/** How the reply's body is read. `none` ignores it. */
export type ReadKind = 'json' | 'text' | 'jsonl' | 'none';

export type HttpTarget =
  /** A path under baseUrl; each hole is one percent-encoded segment part. */
  | { kind: 'path'; path: TextTemplate }
  /** The target starts with a hole: an absolute URL out of a reply, plus what follows the hole. */
  | { kind: 'url'; url: TextTemplate };

export type HttpBody =
  | { kind: 'json'; value: ValueTemplate }
  | { kind: 'form'; value: ValueTemplate }
  | { kind: 'text'; value: TextTemplate; contentType: string }
  | { kind: 'multipart'; parts: readonly MultipartPart[] };

export interface MultipartPart {
  name: string;
  /** Undefined: a plain field. */
  file: { filename: TextTemplate; contentType: string } | undefined;
  data: TextTemplate;
}

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
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
const defaultMaxBytes = 1024 * 1024;
const largestMaxBytes = 16 * 1024 * 1024;

const texts = (description: string): z.ZodRecord<z.ZodString, z.ZodString> =>
  z.record(z.string(), z.string()).describe(description);

const authShape = strict({
  bearer: template('Token, sent as Authorization: Bearer.').optional(),
  basic: strict({ username: template('User name.'), password: template('Password.') })
    .describe('Sent as Authorization: Basic.')
    .optional(),
  header: strict({ name: z.string().describe('Header name.'), value: template('Header value.') })
    .describe("A header of the system's own.")
    .optional(),
  query: strict({ name: z.string().min(1).describe('Parameter name.'), value: template('Parameter value.') })
    .describe('A query parameter.')
    .optional(),
});

const upstreamShape = {
  baseUrl: template('Absolute http(s) URL; its path comes before every request path. Reads env and secrets.'),
  allowHosts: z
    .array(z.string())
    .describe(
      'Further hosts (host, host:port, *.domain) that a URL out of a reply may point at. Default: none.',
    )
    .optional(),
  auth: authShape.describe('How requests prove who they are: exactly one kind.').optional(),
  headers: texts('Headers of every request.').optional(),
  query: texts('Query parameters of every request.').optional(),
  proxy: template('Proxy URL. Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process.').optional(),
  ca: z
    .string()
    .min(1)
    .describe('PEM file of a certificate authority to trust as well, relative to this file.')
    .optional(),
  timeouts: strict({
    connect: duration('To connect. Default 10s.').optional(),
    headers: duration('Until the reply starts. Default 30s.').optional(),
    body: duration('Longest pause while the body arrives. Default 30s.').optional(),
  }).optional(),
  maxBytes: size('Most bytes of a reply that is no result. Default 1MiB, at most 16MiB.').optional(),
};

const fileShape = strict({
  data: template('Content.'),
  filename: template('File name. Default: a plain field.').optional(),
  contentType: z.string().describe('Media type of a file. Default application/octet-stream.').optional(),
});

const stepShape = {
  request: z
    .string()
    .describe(
      'METHOD target. A path under baseUrl, in which each hole is percent-encoded; or a hole that gives an absolute URL, and what follows it.',
    ),
  query: structure(
    'Query parameters: a map, or one hole that gives a map. A list repeats the parameter.',
  ).optional(),
  headers: texts('Headers of this request.').optional(),
  json: structure('JSON body: a structure with holes.').optional(),
  form: structure('Form body: a map, or one hole that gives a map.').optional(),
  text: z
    .union(
      [z.string(), strict({ data: template('Content.'), contentType: z.string().describe('Media type.') })],
      {
        error: 'must be text, or a map of data and contentType',
      },
    )
    .describe('Text body. Default media type text/plain; charset=utf-8.')
    .optional(),
  multipart: z
    .record(
      z.string(),
      z.union([z.string(), fileShape], { error: 'must be text, or a map with data and filename' }),
    )
    .describe('Multipart body: parts by name.')
    .optional(),
  read: z
    .enum(['json', 'text', 'jsonl', 'none'])
    .describe('How the reply body is read. Default json (none for HEAD).')
    .optional(),
};

type RawUpstream = z.infer<z.ZodObject<typeof upstreamShape>>;
type RawStep = z.infer<z.ZodObject<typeof stepShape>>;

/** What the loader needs to know of HTTP: fields, and how to compile them. */
export const httpFormat: DriverFormat<HttpUpstream, HttpStep> = {
  name: 'http',
  upstream: upstreamShape,
  step: stepShape,
  // The loader has validated both against the shapes above.
  compileUpstream: (raw, compiler) => compileUpstream(raw as RawUpstream, compiler),
  compileStep: (raw, compiler, role) => compileStep(raw as RawStep, compiler, role),
};

// ---- upstream ----------------------------------------------------------------------------------

function compileUpstream(raw: RawUpstream, compiler: Compiler): HttpUpstream {
  checkBaseUrl(raw.baseUrl, compiler);
  for (const [index, host] of (raw.allowHosts ?? []).entries())
    checkHost(host, ['allowHosts', index], compiler);
  return {
    baseUrl: compiler.text(['baseUrl'], raw.baseUrl),
    allowHosts: raw.allowHosts ?? [],
    auth: raw.auth && compileAuth(raw.auth, compiler),
    headers: compileHeaders(raw.headers, ['headers'], compiler),
    query: namedTexts(raw.query, ['query'], compiler),
    proxy: raw.proxy === undefined ? undefined : compiler.text(['proxy'], raw.proxy),
    ca: raw.ca === undefined ? undefined : compiler.file(raw.ca),
    timeouts: {
      connect: positive(raw.timeouts?.connect, 10_000, ['timeouts', 'connect'], compiler),
      headers: positive(raw.timeouts?.headers, 30_000, ['timeouts', 'headers'], compiler),
      body: positive(raw.timeouts?.body, 30_000, ['timeouts', 'body'], compiler),
    },
    maxBytes: maxBytes(raw.maxBytes, compiler),
  };
}

function checkBaseUrl(source: string, compiler: Compiler): void {
  if (hasHole(source)) {
    if (!/^(\$\{\{|https?:\/\/)/.test(source))
      compiler.problem(['baseUrl'], 'must start with http://, https:// or a hole');
    return;
  }
  const url = URL.parse(source);
  if (url === null || !/^https?:$/.test(url.protocol))
    compiler.problem(['baseUrl'], 'must be an absolute http or https URL');
  else if (url.username !== '' || url.password !== '')
    compiler.problem(['baseUrl'], 'must not hold a user name or password', 'use upstream.auth and secrets');
  else if (url.search !== '' || url.hash !== '')
    compiler.problem(['baseUrl'], 'must not hold a query or a fragment', 'use upstream.query');
}

function checkHost(host: string, path: Path, compiler: Compiler): void {
  if (
    /^(\*\.)?[a-z0-9_-]+(\.[a-z0-9_-]+)*(:\d{1,5})?$/i.test(host) ||
    /^\[[0-9a-f:.]+\](:\d{1,5})?$/i.test(host)
  )
    return;
  compiler.problem(
    path,
    `"${host}" is no host`,
    'write host, host:port or *.domain, without a scheme or path',
  );
}

function compileAuth(raw: z.infer<typeof authShape>, compiler: Compiler): HttpAuth | undefined {
  const kinds = Object.keys(raw);
  if (kinds.length !== 1) {
    compiler.problem(['auth'], 'must hold exactly one of bearer, basic, header, query');
    return undefined;
  }
  if (raw.bearer !== undefined)
    return { kind: 'bearer', token: compiler.text(['auth', 'bearer'], raw.bearer) };
  if (raw.basic !== undefined)
    return {
      kind: 'basic',
      username: compiler.text(['auth', 'basic', 'username'], raw.basic.username),
      password: compiler.text(['auth', 'basic', 'password'], raw.basic.password),
    };
  if (raw.header !== undefined) {
    checkHeader(raw.header.name, raw.header.value, ['auth', 'header', 'name'], compiler);
    return {
      kind: 'header',
      name: raw.header.name,
      value: compiler.text(['auth', 'header', 'value'], raw.header.value),
    };
  }
  if (raw.query === undefined) return undefined;
  return {
    kind: 'query',
    name: raw.query.name,
    value: compiler.text(['auth', 'query', 'value'], raw.query.value),
  };
}

function positive(text: string | undefined, fallback: number, path: Path, compiler: Compiler): number {
  const ms = text === undefined ? fallback : (parseDuration(text) ?? 0);
  if (ms < 1 || ms > 600_000) compiler.problem(path, 'must be between 1ms and 10m');
  return ms;
}

function maxBytes(text: string | undefined, compiler: Compiler): number {
  const bytes = text === undefined ? defaultMaxBytes : (parseSize(text) ?? 0);
  if (bytes < 1 || bytes > largestMaxBytes)
    compiler.problem(['maxBytes'], 'must be more than nothing and at most 16MiB');
  return bytes;
}

// ---- steps -------------------------------------------------------------------------------------

function compileStep(raw: RawStep, compiler: Compiler, _role: StepRole): HttpStep {
  const { method, target } = compileRequest(raw.request, compiler);
  const body = compileBody(raw, compiler);
  if (body !== undefined && /^(GET|HEAD)\s/.test(raw.request))
    compiler.problem(['request'], `a ${method} request has no body`, 'use query, or another method');
  if (method === 'HEAD' && raw.read !== undefined && raw.read !== 'none')
    compiler.problem(['read'], 'the reply to a HEAD request has no body');
  return {
    method,
    target,
    query: compileMap(raw.query, ['query'], compiler),
    headers: compileHeaders(raw.headers, ['headers'], compiler),
    body,
    read: raw.read ?? (method === 'HEAD' ? 'none' : 'json'),
  };
}

function compileRequest(line: string, compiler: Compiler): Pick<HttpStep, 'method' | 'target'> {
  const match = /^(\S+)(\s+)(.*)$/s.exec(line);
  const word = match?.[1] ?? line;
  const method = methods.find((name) => name === word);
  if (method === undefined) {
    const upper = methods.find((name) => name === word.toUpperCase());
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
  return { method: method ?? 'GET', target: compileTarget(source, offset, compiler) };
}

function compileTarget(source: string, offset: number, compiler: Compiler): HttpTarget {
  const text = compiler.text(['request'], source, { secrets: false, offset });
  const literal = text.parts.filter((part) => typeof part === 'string').join('');
  if (/[\s\p{Cc}]/u.test(literal)) compiler.problem(['request'], 'the target holds white space', 'write %20');
  if (literal.includes('#'))
    compiler.problem(['request'], 'the target holds a fragment (#…), which is never sent');
  if (literal.includes('\\')) compiler.problem(['request'], 'the target holds a backslash');
  if (source.startsWith('$' + '{{')) return { kind: 'url', url: text };
  if (/^([a-z][a-z0-9+.-]*:)?\/\//i.test(source))
    compiler.problem(['request'], 'the target names a host', 'write a path under upstream.baseUrl');
  const [path = ''] = literal.split('?');
  if (path.split('/').some((segment) => /^(\.|%2e){1,2}$/i.test(segment)))
    compiler.problem(['request'], 'the path holds a "." or ".." segment');
  return { kind: 'path', path: text };
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
    checkValue(raw.text.contentType, ['text', 'contentType'], compiler);
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
    if (part.contentType !== undefined) checkValue(part.contentType, [...path, 'contentType'], compiler);
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

/** A map with holes, or one hole that gives a map. */
function compileMap(raw: unknown, path: Path, compiler: Compiler): ValueTemplate | undefined {
  if (raw === undefined) return undefined;
  const oneHole = typeof raw === 'string' && hasHole(raw);
  const map = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
  if (!oneHole && !map) compiler.problem(path, 'must be a map, or a hole that gives a map');
  return compiler.value(path, raw as Json);
}

function compileHeaders(
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

function checkHeader(name: string, value: string, path: Path, compiler: Compiler): void {
  if (!token.test(name)) compiler.problem(path, `"${name}" is no header name`);
  else if (ownHeaders.has(name.toLowerCase()))
    compiler.problem(path, `the header ${name} is set by taskferry`);
  checkValue(value, path, compiler);
}

function checkValue(value: string, path: Path, compiler: Compiler): void {
  if (/[\r\n\0]/.test(value)) compiler.problem(path, 'a header value is one line');
}

function namedTexts(
  raw: { [name: string]: string } | undefined,
  path: Path,
  compiler: Compiler,
): readonly NamedText[] {
  return Object.entries(raw ?? {}).map(([name, value]) => ({
    name,
    value: compiler.text([...path, name], value),
  }));
}
