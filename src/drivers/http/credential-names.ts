// What expressions know of the credentials that an adapter makes itself: `login.<name>`, `jwt.<name>`.

import { storedType } from '../../config/compile-capture.ts';
import type { Member, Names } from '../../config/expression-names.ts';
import type { HttpUpstream, JwtToken, LoginStep } from './compiled.ts';

/** Without `upstream` nothing is known of its credentials, so that no name in them is a fault. */
export function credentialNames(upstream: Pick<HttpUpstream, 'login' | 'jwt'> | undefined): Names {
  if (upstream === undefined) return { login: { kind: 'any' }, jwt: { kind: 'any' } };
  return { ...loginNames(upstream.login?.steps ?? []), ...jwtNames(upstream.jwt) };
}

export function jwtNames(tokens: readonly JwtToken[]): Names {
  const members = tokens.map(({ name }): [string, Member] => [name, { type: 'string', certain: true }]);
  return {
    jwt: {
      kind: 'members',
      members: Object.fromEntries(members),
      open: false,
      declare: 'declare it under upstream.jwt',
    },
  };
}

/** What the captures of `steps` give. */
export function loginNames(steps: readonly LoginStep[]): Names {
  const members = steps.flatMap(({ capture }) =>
    capture.map(({ name, value, optional }): [string, Member] => [
      name,
      {
        type: storedType(value.type),
        certain: !optional,
        fix: `the login may not give it; read it as login.?${name}`,
      },
    ]),
  );
  return {
    login: {
      kind: 'members',
      members: Object.fromEntries(members),
      open: false,
      declare: 'capture it in upstream.login',
    },
  };
}
