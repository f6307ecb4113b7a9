// Compiling `upstream:` of an HTTP adapter.

import type { Compiler, Path } from '../../config/driver-format.ts';
import { largestBytes } from '../../config/limits.ts';
import { hasHole, type TextTemplate } from '../../config/template.ts';
import { parseDuration, parseSize } from '../../config/units.ts';
import { compileAuth } from './compile-auth.ts';
import { compileHeaders, namedTexts } from './compile-headers.ts';
import { compileJwt } from './compile-jwt.ts';
import { compileLogin } from './compile-login.ts';
import { compileRateLimit } from './compile-rate-limit.ts';
import { compileTls } from './compile-tls.ts';
import type { HttpUpstream } from './compiled.ts';
import { credentialNames, jwtNames } from './credential-names.ts';
import type { RawUpstream } from './shape.ts';
import type { RawAllowedHost } from './shape-auth.ts';
import type { RawJwt } from './shape-jwt.ts';
import type { RawLogin } from './shape-login.ts';
import type { RawTls } from './shape-tls.ts';

const defaultMaxBytes = 1024 * 1024;

export function compileUpstream(
  raw: RawUpstream & RawTls & RawLogin & RawJwt,
  compiler: Compiler,
): HttpUpstream {
  checkBaseUrl(raw.baseUrl, compiler);
  const hosts = (raw.allowHosts ?? []).map((host, index) =>
    compileHost(host, ['allowHosts', index], compiler),
  );
  const jwt = compileJwt(raw, compiler);
  const login = compileLogin(raw, compiler.within([], { sent: jwtNames(jwt) }));
  const sender = compiler.within([], { sent: credentialNames({ login, jwt }) });
  return {
    baseUrl: compileBaseUrl(raw.baseUrl, compiler),
    allowHosts: hosts.map(({ host }) => host),
    credentialHosts: hosts.filter(({ credentials }) => credentials).map(({ host }) => host),
    auth: raw.auth && compileAuth(raw.auth, ['auth'], sender),
    headers: compileHeaders(raw.headers, ['headers'], sender),
    query: namedTexts(raw.query, ['query'], sender),
    jwt,
    login,
    proxy: raw.proxy === undefined ? undefined : compiler.text(['proxy'], raw.proxy),
    tls: compileTls(raw, compiler),
    rateLimit: compileRateLimit(raw.rateLimit, compiler),
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

function compileHost(
  raw: RawAllowedHost,
  path: Path,
  compiler: Compiler,
): { host: string; credentials: boolean } {
  if (typeof raw === 'string') {
    checkHost(raw, path, compiler);
    return { host: raw, credentials: false };
  }
  checkHost(raw.host, [...path, 'host'], compiler);
  return { host: raw.host, credentials: raw.credentials ?? false };
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

function positive(text: string | undefined, fallback: number, path: Path, compiler: Compiler): number {
  const ms = text === undefined ? fallback : (parseDuration(text) ?? 0);
  if (ms < 1 || ms > 600_000) compiler.problem(path, 'must be between 1ms and 10m');
  return ms;
}

function maxBytes(text: string | undefined, compiler: Compiler): number {
  const bytes = text === undefined ? defaultMaxBytes : (parseSize(text) ?? 0);
  if (bytes < 1 || bytes > largestBytes)
    compiler.problem(['maxBytes'], 'must be more than nothing and at most 16MiB');
  return bytes;
}
