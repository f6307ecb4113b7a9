// Compiling `upstream:` of an HTTP adapter.

import type { z } from 'zod';
import type { Compiler, Path } from '../../config/driver-format.ts';
import { hasHole, type TextTemplate } from '../../config/template.ts';
import { parseDuration, parseSize } from '../../config/units.ts';
import { checkHeaderName, compileHeaders, compileHeaderValue, namedTexts } from './compile-headers.ts';
import type { HttpAuth, HttpUpstream } from './compiled.ts';
import type { authShape, RawUpstream } from './shape.ts';

const defaultMaxBytes = 1024 * 1024;
const largestMaxBytes = 16 * 1024 * 1024;

export function compileUpstream(raw: RawUpstream, compiler: Compiler): HttpUpstream {
  checkBaseUrl(raw.baseUrl, compiler);
  for (const [index, host] of (raw.allowHosts ?? []).entries())
    checkHost(host, ['allowHosts', index], compiler);
  return {
    baseUrl: compileBaseUrl(raw.baseUrl, compiler),
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

/** URLs of replies are resolved against it, captured and shown: a secret in it would be stored with every task. */
function compileBaseUrl(source: string, compiler: Compiler): TextTemplate {
  const template = compiler.text(['baseUrl'], source);
  const hint = 'send it by auth, headers or query; a part that may be shown belongs under env';
  if ([...template.reads].some((name) => name.split('.')[0] === 'secrets'))
    compiler.problem(['baseUrl'], "can't hold a secret: URLs are stored with tasks and shown", hint);
  return template;
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
    checkHeaderName(raw.header.name, ['auth', 'header', 'name'], compiler);
    return {
      kind: 'header',
      name: raw.header.name,
      value: compileHeaderValue(raw.header.value, ['auth', 'header', 'value'], compiler),
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
