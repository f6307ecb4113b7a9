// Signed tokens of one connection: made when a request reads them, used for half of their life.

import { createHash, randomUUID } from 'node:crypto';
import type { JWTHeaderParameters } from 'jose';
import type { Clock } from '../../clock.ts';
import { EvaluationFault, type Scope } from '../../config/expression.ts';
import { type Json, type JsonObject, stringifyExact } from '../../exact-json.ts';
import type { JwtToken } from './compiled.ts';
import { RequestFault } from './request-fault.ts';
import { KeyFault, signingKey } from './signing-key.ts';

export interface Jwts {
  /**
   * The tokens that are among `reads` (`jwt.<name>`, or all with `jwt`), by name.
   * @param scope `env` and `secrets`.
   * @throws RequestFault with code `credential` when one can't be made.
   */
  tokens(reads: ReadonlySet<string>, scope: Scope): Promise<JsonObject>;
  /** Tokens and keys that must not be shown. */
  secrets(): Iterable<string>;
}

/** Clocks differ, so a token starts this long ago, or a tenth of its life if that is less. */
const backdateMs = 30_000;
/** Tokens and keys that are still kept out of what is shown, the newest ones. */
const mostRemembered = 32;

interface Signed {
  token: string;
  /** Digest of everything it was made of. */
  made: string;
  /** Monotonic milliseconds. */
  renewAt: number;
}

/** Makes no token yet. */
export function createJwts(definitions: readonly JwtToken[], clock: Clock): Jwts {
  const known = new Map<string, Signed>();
  const remembered = new Set<string>();

  const remember = (text: string): void => {
    remembered.delete(text);
    remembered.add(text);
    for (const oldest of remembered) {
      if (remembered.size <= mostRemembered) return;
      remembered.delete(oldest);
    }
  };

  const tokenOf = async (definition: JwtToken, scope: Scope): Promise<string> => {
    const parts = rendered(definition, scope);
    const made = createHash('sha256').update(stringifyExact(parts)).digest('base64');
    const last = known.get(definition.name);
    if (last?.made === made && clock.monotonic() < last.renewAt && !definition.jti) return last.token;
    remember(parts.key);
    const { token, endsInMs } = await sign(definition, parts, clock.now());
    remember(token);
    known.set(definition.name, { token, made, renewAt: clock.monotonic() + endsInMs / 2 });
    return token;
  };

  return {
    async tokens(reads, scope) {
      const values: JsonObject = {};
      for (const definition of definitions) {
        if (!reads.has('jwt') && !reads.has(`jwt.${definition.name}`)) continue;
        try {
          values[definition.name] = await tokenOf(definition, scope);
        } catch (error) {
          throw asFault(definition.name, error);
        }
      }
      return values;
    },
    secrets: () => remembered,
  };
}

/** What is wrong with a token's key under these values, as a sentence; for a check at start. */
export function jwtFault(definitions: readonly JwtToken[], scope: Scope): string | undefined {
  for (const definition of definitions) {
    try {
      const { key, passphrase } = rendered(definition, scope);
      signingKey(definition.alg, key, passphrase);
    } catch (error) {
      return asFault(definition.name, error).message;
    }
  }
  return undefined;
}

interface Parts extends JsonObject {
  key: string;
  header: JsonObject;
  claims: JsonObject;
}

/** @throws EvaluationFault, RequestFault */
function rendered(
  { name, key, passphrase, header, claims }: JwtToken,
  scope: Scope,
): Parts & { passphrase?: string } {
  const map = (value: ReturnType<NonNullable<typeof header>['render']>, what: string): JsonObject => {
    if (value === undefined || value === null) return {};
    if (typeof value === 'object' && !Array.isArray(value)) return value;
    throw new RequestFault(`jwt.${name}: ${what} must be a map`, 'credential');
  };
  return {
    key: key.render(scope),
    header: map(header?.render(scope), 'header'),
    claims: map(claims?.render(scope), 'claims'),
    ...(passphrase && { passphrase: passphrase.render(scope) }),
  };
}

async function sign(
  { alg, lifetimeMs, jti }: JwtToken,
  { key, passphrase, header, claims }: Parts & { passphrase?: string },
  now: number,
): Promise<{ token: string; endsInMs: number }> {
  const back = Math.min(backdateMs, lifetimeMs / 10);
  const issuedAt = Math.floor((now - back) / 1000);
  const expiresAt = issuedAt + Math.floor(lifetimeMs / 1000);
  // jose writes with JSON.stringify, which knows no bigint.
  const payload = { ...plain(claims), iat: issuedAt, exp: expiresAt, ...(jti && { jti: randomUUID() }) };
  const protectedHeader: JWTHeaderParameters = { typ: 'JWT', ...plain(header), alg };
  // Loaded by the first token: most adapters sign none.
  const { SignJWT } = await import('jose/jwt/sign');
  const token = await new SignJWT(payload)
    .setProtectedHeader(protectedHeader)
    .sign(signingKey(alg, key, passphrase));
  return { token, endsInMs: expiresAt * 1000 - now };
}

/** Whole numbers as numbers. @throws KeyFault for those that a number can't hold. */
function plain(value: JsonObject): { [name: string]: unknown } {
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plainValue(member)]));
}

function plainValue(value: Json): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    if (Number.isSafeInteger(number)) return number;
    throw new KeyFault(`the number ${value} is too large for a token; send it as text`);
  }
  if (Array.isArray(value)) return value.map(plainValue);
  return typeof value === 'object' && value !== null ? plain(value) : value;
}

function asFault(name: string, error: unknown): RequestFault {
  if (error instanceof RequestFault) return error;
  if (error instanceof EvaluationFault || error instanceof KeyFault)
    return new RequestFault(`jwt.${name}: ${error.message}`, 'credential');
  throw error;
}
