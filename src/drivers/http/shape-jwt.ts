// Fields of `upstream:` for tokens that taskferry signs itself.

import { z } from 'zod';
import { identifier } from '../../config/adapter-schema.ts';
import { duration, strict, structure, template } from '../../config/shape.ts';

export const jwtAlgorithms = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'ES256',
  'ES384',
  'EdDSA',
  'HS256',
  'HS384',
  'HS512',
] as const;

const jwtToken = strict({
  alg: z.enum(jwtAlgorithms).describe('How it is signed (RFC 7518).'),
  key: template(
    'The private key: PEM (PKCS#8, PKCS#1, SEC 1) or a JWK as JSON; for HS256 and so on the shared secret as text.',
  ),
  passphrase: template('Of an encrypted PEM key.').optional(),
  header: structure('Further header fields, such as kid: a structure with holes.').optional(),
  claims: structure('The claims: a structure with holes. iat and exp are added.').optional(),
  expires: duration('How long after iat it ends. Default 5m, from 10s to 1d.').optional(),
  jti: z
    .boolean()
    .describe('Adds a random jti; such a token is made anew for every request. Default false.')
    .optional(),
});

export const jwtShape = {
  jwt: z
    .record(identifier, jwtToken)
    .describe('Tokens that are signed here, read as jwt.<name> in whatever is sent.')
    .optional(),
};

export type RawJwt = z.infer<z.ZodObject<typeof jwtShape>>;
