// Keys that sign tokens, out of the text of a secret.

import { createPrivateKey, type KeyObject } from 'node:crypto';
import type { JwtToken } from './compiled.ts';

/** The message is for people and holds nothing of the key. */
export class KeyFault extends Error {
  override readonly name = 'KeyFault';
}

/** @throws KeyFault when the text is no key, or none for `alg`. */
export function signingKey(
  alg: JwtToken['alg'],
  text: string,
  passphrase: string | undefined,
): KeyObject | Uint8Array {
  if (alg.startsWith('HS')) return sharedKey(text);
  const key = privateKey(text.trim(), passphrase);
  const wanted = kindOf[alg];
  const kind = kindOfKey(key);
  if (wanted !== undefined && !wanted.includes(kind))
    throw new KeyFault(`the key is of the type ${kind}, but ${alg} wants ${wanted[0]}`);
  if ((key.asymmetricKeyDetails?.modulusLength ?? 2048) < 2048)
    throw new KeyFault('an RSA key must have 2048 bits or more');
  return key;
}

const kindOf: { readonly [alg in JwtToken['alg']]?: readonly string[] } = {
  RS256: ['rsa'],
  RS384: ['rsa'],
  RS512: ['rsa'],
  PS256: ['rsa', 'rsa-pss'],
  ES256: ['P-256'],
  ES384: ['P-384'],
  EdDSA: ['ed25519'],
};

const curves: { readonly [name: string]: string } = { prime256v1: 'P-256', secp384r1: 'P-384' };

function kindOfKey({ asymmetricKeyType, asymmetricKeyDetails }: KeyObject): string {
  const curve = asymmetricKeyDetails?.namedCurve;
  return curve === undefined ? String(asymmetricKeyType) : (curves[curve] ?? curve);
}

/** A JWK of the type oct, else the text itself. */
function sharedKey(text: string): Uint8Array {
  const jwk = jwkOf(text);
  return jwk?.kty === 'oct' && typeof jwk.k === 'string'
    ? Buffer.from(jwk.k, 'base64url')
    : Buffer.from(text);
}

function privateKey(text: string, passphrase: string | undefined): KeyObject {
  const jwk = jwkOf(text);
  try {
    if (jwk !== undefined) return createPrivateKey({ key: jwk, format: 'jwk' });
    // Environment files often hold the lines joined by a written \n, which no PEM has.
    const pem = text.includes('\n') ? text : text.replaceAll('\\n', '\n');
    return createPrivateKey({ key: pem, format: 'pem', ...(passphrase !== undefined && { passphrase }) });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    throw new KeyFault(`the key is no private key in PEM or JWK, or its passphrase is wrong${code}`);
  }
}

function jwkOf(text: string): { [name: string]: unknown } | undefined {
  if (!text.trimStart().startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
