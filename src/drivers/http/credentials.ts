// What an adapter adds to every request under `upstream`: headers, query and auth. Only its own origin gets them.

import { EvaluationFault, type Scope } from '../../config/expression.ts';
import type { HttpUpstream } from './compiled.ts';
import type { Pair } from './query.ts';
import { RequestFault } from './request-fault.ts';

export interface UpstreamAdditions {
  headers: readonly Pair[];
  query: readonly Pair[];
  auth: { headers: readonly Pair[]; query: readonly Pair[] };
}

/** @throws RequestFault with code `credential` when the auth can't be rendered. @throws EvaluationFault */
export function renderAdditions(upstream: HttpUpstream, scope: Scope): UpstreamAdditions {
  const render = ({ name, value }: HttpUpstream['headers'][number]): Pair => [name, value.render(scope)];
  return {
    headers: upstream.headers.map(render),
    query: upstream.query.map(render),
    auth: renderAuth(upstream.auth, scope),
  };
}

function renderAuth(auth: HttpUpstream['auth'], scope: Scope): UpstreamAdditions['auth'] {
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
    }
  } catch (error) {
    if (error instanceof EvaluationFault) {
      throw new RequestFault(`upstream.auth can't be filled in: ${error.message}`, 'credential');
    }
    throw error;
  }
}

function basic(username: string, password: string): string {
  if (username.includes(':'))
    throw new RequestFault("the user name of basic auth can't hold a colon", 'credential');
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
