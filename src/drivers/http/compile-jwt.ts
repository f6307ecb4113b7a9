// Compiling `upstream.jwt`: tokens that taskferry signs itself.

import type { Compiler, Path } from '../../config/driver-format.ts';
import { hasHole, type ValueTemplate } from '../../config/template.ts';
import { parseDuration } from '../../config/units.ts';
import { compileMap } from './compile-headers.ts';
import type { JwtToken } from './compiled.ts';
import type { RawJwt } from './shape-jwt.ts';

const mostTokens = 20;
const defaultLifetime = 5 * 60_000;

export function compileJwt(raw: RawJwt, compiler: Compiler): JwtToken[] {
  const entries = Object.entries(raw.jwt ?? {});
  if (entries.length > mostTokens) compiler.problem(['jwt'], `there are at most ${mostTokens} tokens`);
  return entries.map(([name, token]) => {
    const at: Path = ['jwt', name];
    const lifetimeMs = token.expires === undefined ? defaultLifetime : (parseDuration(token.expires) ?? 0);
    if (lifetimeMs < 10_000 || lifetimeMs > 86_400_000)
      compiler.problem([...at, 'expires'], 'must be between 10s and 1d');
    if (!hasHole(token.key))
      compiler.problem(
        [...at, 'key'],
        'must come from a secret',
        `for example $${'{{ secrets.SIGNING_KEY }}'}`,
      );
    return {
      name,
      alg: token.alg,
      key: compiler.text([...at, 'key'], token.key),
      passphrase:
        token.passphrase === undefined ? undefined : compiler.text([...at, 'passphrase'], token.passphrase),
      header: ownFields(token.header, [...at, 'header'], ['alg'], compiler),
      claims: ownFields(
        token.claims,
        [...at, 'claims'],
        token.jti ? ['iat', 'exp', 'jti'] : ['iat', 'exp'],
        compiler,
      ),
      lifetimeMs,
      jti: token.jti ?? false,
    };
  });
}

/** @param taken members that are set by taskferry. */
function ownFields(
  raw: unknown,
  path: Path,
  taken: readonly string[],
  compiler: Compiler,
): ValueTemplate | undefined {
  if (typeof raw === 'object' && raw !== null)
    for (const name of taken)
      if (Object.hasOwn(raw, name)) compiler.problem([...path, name], `${name} is set by taskferry`);
  return compileMap(raw, path, compiler);
}
