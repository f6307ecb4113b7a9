// What is added to a request beside what its step says: headers, query and auth of the upstream, or the step's own.

import { EvaluationFault, type Scope } from '../../config/expression.ts';
import { readsRoot, readsSecret } from '../../config/expression-names.ts';
import type { HeaderSource, HttpAuth, HttpStep, HttpUpstream } from './compiled.ts';
import { type Pair, pairsOf } from './query.ts';
import { RequestFault } from './request-fault.ts';
import type { SigV4Credentials } from './sigv4.ts';
import type { Target } from './target.ts';

export type Additions = Pick<HttpUpstream, 'auth' | 'headers' | 'query'>;

export interface RenderedAdditions {
  headers: readonly Pair[];
  query: readonly Pair[];
  auth: {
    headers: readonly Pair[];
    query: readonly Pair[];
    /** The request is signed with these as it goes out. */
    sign?: SigV4Credentials;
  };
}

const nothing: Additions = { auth: undefined, headers: [], query: [] };

/** @param target where the request goes, once it is known. */
export function additionsFor(
  { auth, headers, query }: Additions,
  step: Pick<HttpStep, 'auth'>,
  target?: Pick<Target, 'admission'>,
): Additions {
  if (step.auth === 'none') {
    return {
      auth: undefined,
      headers: headers.filter((source) => !readsSecret(headerReads(source))),
      query: query.filter(({ value }) => !readsSecret(value.reads)),
    };
  }
  // A login at another host gets what its step says, and nothing that is meant for the upstream.
  if (target?.admission === 'fixed') return { ...nothing, auth: step.auth };
  return { headers, query, auth: step.auth ?? auth };
}

/** The upstream as its login sees it: whatever reads the login can't be there before it. */
export function withoutLogin(upstream: HttpUpstream): HttpUpstream {
  const free = (reads: Iterable<string>): boolean => !readsRoot(reads, 'login');
  return {
    ...upstream,
    login: undefined,
    auth: upstream.auth && authReads(upstream.auth).every(free) ? upstream.auth : undefined,
    headers: upstream.headers.filter((source) => free(headerReads(source))),
    query: upstream.query.filter(({ value }) => free(value.reads)),
  };
}

/** Names that the additions read, one set for each template. */
export function additionReads({ auth, headers, query }: Additions): ReadonlySet<string>[] {
  return [
    ...(auth ? authReads(auth) : []),
    ...headers.map(headerReads),
    ...query.map(({ value }) => value.reads),
  ];
}

export function headerReads(source: HeaderSource): ReadonlySet<string> {
  return 'map' in source ? source.map.reads : source.value.reads;
}

/** @throws RequestFault when a map holds anything but texts, numbers and truths. @throws EvaluationFault */
export function renderHeaders(sources: readonly HeaderSource[], scope: Scope): Pair[] {
  return sources.flatMap((source): Pair[] =>
    'map' in source
      ? pairsOf(source.map.render(scope), 'headers')
      : [[source.name, source.value.render(scope)]],
  );
}

/** @throws RequestFault with code `credential` when the auth can't be rendered. @throws EvaluationFault */
export function renderAdditions({ auth, headers, query }: Additions, scope: Scope): RenderedAdditions {
  return {
    headers: renderHeaders(headers, scope),
    query: query.map(({ name, value }): Pair => [name, value.render(scope)]),
    auth: renderAuth(auth, scope),
  };
}

function authReads(auth: HttpAuth): ReadonlySet<string>[] {
  switch (auth.kind) {
    case 'bearer':
      return [auth.token.reads];
    case 'basic':
      return [auth.username.reads, auth.password.reads];
    case 'header':
    case 'query':
      return [auth.value.reads];
    case 'sigv4':
      return [auth.region, auth.service, auth.accessKeyId, auth.secretAccessKey, auth.sessionToken].map(
        ({ reads }) => reads,
      );
  }
}

function renderAuth(auth: HttpAuth | undefined, scope: Scope): RenderedAdditions['auth'] {
  try {
    switch (auth?.kind) {
      case undefined:
        return { headers: [], query: [] };
      case 'bearer':
        return { headers: [['authorization', `Bearer ${auth.token.render(scope)}`]], query: [] };
      case 'basic':
        return {
          headers: [['authorization', basic(auth.username.render(scope), auth.password.render(scope))]],
          query: [],
        };
      case 'header':
        return { headers: [[auth.name, auth.value.render(scope)]], query: [] };
      case 'query':
        return { headers: [], query: [[auth.name, auth.value.render(scope)]] };
      case 'sigv4':
        return {
          headers: [],
          query: [],
          sign: {
            region: auth.region.render(scope),
            service: auth.service.render(scope),
            accessKeyId: auth.accessKeyId.render(scope),
            secretAccessKey: auth.secretAccessKey.render(scope),
            sessionToken: auth.sessionToken.render(scope),
          },
        };
    }
  } catch (error) {
    if (error instanceof EvaluationFault) {
      throw new RequestFault(`auth can't be filled in: ${error.message}`, 'credential');
    }
    throw error;
  }
}

function basic(username: string, password: string): string {
  if (username.includes(':'))
    throw new RequestFault("the user name of basic auth can't hold a colon", 'credential');
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
