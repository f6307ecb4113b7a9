// Where a request goes: a path under the base URL, or a URL that a reply gave.

import type { Expression, Scope } from '../../config/expression.ts';
import type { TextTemplate } from '../../config/template.ts';
import type { HttpTarget, HttpUpstream } from './compiled.ts';
import { type Admission, admit, hostAndPort } from './origins.ts';
import { encodeHole, encodePathHole, hasControl, refuseDotSegments } from './path-encode.ts';
import { joinQueries } from './query.ts';
import { RequestFault } from './request-fault.ts';

export interface Target {
  /** `https://host:port`, without a path. */
  origin: string;
  /** Encoded, starts with a slash. */
  path: string;
  /** Encoded, without the question mark; may be empty. */
  query: string;
  /** `fixed`: a login's own address, which the file names. */
  admission: Admission | 'fixed';
  /** Credentials may go there: the upstream itself, hosts that are said to get them, and what the file names. */
  trusted: boolean;
}

/** @throws RequestFault when `text` is no absolute http(s) URL, or carries a user, a query or a fragment. */
export function parseBase(text: string): URL {
  // The text itself is left out of the messages: it may hold a secret.
  const url = URL.parse(text.trim());
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new RequestFault('baseUrl is not an absolute http or https URL');
  }
  if (url.username !== '' || url.password !== '') {
    throw new RequestFault('baseUrl holds a user name or password; use auth: basic instead');
  }
  if (url.search !== '' || url.hash !== '') {
    throw new RequestFault("baseUrl can't hold a query or a fragment; use query: instead");
  }
  return url;
}

/** Which hosts a URL may point at. */
export type Hosts = Pick<HttpUpstream, 'allowHosts' | 'credentialHosts'>;

/**
 * @throws RequestFault when the URL would leave the base path or the admitted hosts.
 * @throws EvaluationFault
 */
export function renderTarget(target: HttpTarget, base: URL, hosts: Hosts, scope: Scope): Target {
  switch (target.kind) {
    case 'path':
      return underBase(target.path, base, scope);
    case 'url':
      return chosenByReply(target.url, base, hosts, scope);
    case 'fixed':
      return namedByFile(target.url, base, scope);
  }
}

function underBase(template: TextTemplate, base: URL, scope: Scope): Target {
  const [path, query] = cutQuery(renderParts(template.parts, scope));
  const prefix = base.pathname.replace(/\/+$/, '');
  const joined = path === '' ? base.pathname : `${prefix}/${path.replace(/^\//, '')}`;
  return { ...settle(base.origin, joined, query), admission: 'own', trusted: true };
}

function chosenByReply(
  template: TextTemplate,
  base: URL,
  { allowHosts, credentialHosts }: Hosts,
  scope: Scope,
): Target {
  const [first, ...rest] = template.parts;
  if (first === undefined || typeof first === 'string') {
    throw new RequestFault(`${template.source} is not a URL out of a reply`);
  }
  const url = absoluteUrl(first, scope);
  const admission = admit(url, base, allowHosts);
  if (admission === undefined) {
    throw new RequestFault(
      `${first.source} points at ${url.protocol}//${hostAndPort(url)}, which is neither the upstream nor in allowHosts`,
    );
  }
  const [path, query] = addTail(url, renderParts(rest, scope));
  const trusted = admission === 'own' || (keepsSecrecy(url, base) && admits(url, base, credentialHosts));
  return { ...settle(url.origin, path, query), admission, trusted };
}

/** The URL is written in the file, or is given by a variable, whole or up to what follows. */
function namedByFile(template: TextTemplate, base: URL, scope: Scope): Target {
  const [first, ...rest] = template.parts;
  if (first === undefined) throw new RequestFault('the request line holds no URL');
  const start = typeof first === 'string' ? fixedText(first) : first.evaluate(scope);
  const text = `${String(start ?? '').trim()}${renderParts(rest, scope)}`;
  const [whole, path = '/', query = ''] = /^https?:\/\/[^/?#\\]+(\/[^?#]*)?(?:\?([^#]*))?$/i.exec(text) ?? [];
  const url = whole === undefined ? null : URL.parse(whole);
  if (url === null || url.username !== '' || url.password !== '') {
    throw new RequestFault(
      `${template.source} is not an absolute http or https URL without user, password and fragment`,
    );
  }
  const admission = url.origin === base.origin ? 'own' : 'fixed';
  return { ...settle(url.origin, path, query), admission, trusted: true };
}

/** Credentials never leave https for plain http. */
function keepsSecrecy(url: URL, base: URL): boolean {
  return url.protocol === 'https:' || base.protocol === 'http:';
}

function admits(url: URL, base: URL, hosts: readonly string[]): boolean {
  return admit(url, base, hosts) !== undefined;
}

function absoluteUrl(first: Expression, scope: Scope): URL {
  const value = first.evaluate(scope);
  if (typeof value !== 'string') throw new RequestFault(`${first.source} gives no URL`);
  const shown = JSON.stringify(value.replace(/[?#].*$/s, '').slice(0, 200));
  if (hasControl(value) || /[\s\\]/.test(value)) {
    throw new RequestFault(`${first.source} gives ${shown}, which holds characters that a URL can't`);
  }
  const url = /^https?:\/\//i.test(value) ? URL.parse(value) : null;
  if (url === null) {
    throw new RequestFault(
      `${first.source} gives ${shown}, which is not an absolute http or https URL; capture it with resolveUrl(…)`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new RequestFault(`${first.source} gives a URL with a user name or password in it`);
  }
  return url;
}

/** What follows the hole goes on the URL's path, and from its `?` or `&` on to the URL's query. */
function addTail(url: URL, tail: string): [path: string, query: string] {
  const [, path = '', query = ''] = /^([^?&]*)[?&]?(.*)$/s.exec(tail) ?? [];
  return [url.pathname + path, joinQueries(url.search.slice(1), query)];
}

function renderParts(parts: readonly (string | Expression)[], scope: Scope): string {
  return parts.reduce<string>((text, part) => {
    if (typeof part === 'string') return text + fixedText(part);
    // Only an expression that is a list by its type: a reply must not add segments.
    const segments = part.type.startsWith('list') && !text.includes('?');
    const encode = segments ? encodePathHole : encodeHole;
    return text + encode(part.evaluate(scope), part.source);
  }, '');
}

function fixedText(text: string): string {
  if (hasControl(text) || /[#\\]/.test(text)) {
    throw new RequestFault(
      'the request line holds "#", "\\" or a control character; write it percent-encoded',
    );
  }
  return text;
}

function cutQuery(text: string): [path: string, query: string] {
  const at = text.indexOf('?');
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}

/** Lets the URL parser encode what the fixed text left raw, and makes sure it changed nothing else. */
function settle(origin: string, path: string, query: string): Pick<Target, 'origin' | 'path' | 'query'> {
  refuseDotSegments(path);
  const url = URL.parse(`${origin}${path}${query === '' ? '' : `?${query}`}`);
  if (url === null || url.origin !== origin || segments(url.pathname) !== segments(path)) {
    throw new RequestFault('the rendered request line does not make a valid URL');
  }
  return { origin, path: url.pathname, query: url.search.slice(1) };
}

function segments(path: string): number {
  return path.split('/').length;
}
