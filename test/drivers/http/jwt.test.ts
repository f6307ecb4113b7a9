// Tokens that are signed here: every key and algorithm, what is in them, and when they are made anew.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { createPublicKey, generateKeyPairSync } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, type JWTVerifyResult, jwtVerify } from 'jose';
import { describe, expect, test } from 'vitest';
import type { HttpUpstream } from '../../../src/drivers/http/compiled.ts';
import { createHttpDriver } from '../../../src/drivers/http/driver.ts';
import { createFakeClock } from '../../helpers/fake-clock.ts';
import { json, type TestServer } from '../../helpers/http-server.ts';
import { failed, replied, serve } from './fixture.ts';
import { configOf, connectWritten, faultsOf } from './written.ts';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const p256 = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' });
const ed25519 = generateKeyPairSync('ed25519');
const pkcs8 = rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();

const sent = (alg: string, rest = ''): string => `jwt:
  app:
    alg: ${alg}
    key: \${{ secrets.KEY }}
    header: { kid: key-1 }
    claims: { iss: "\${{ env.ISSUER }}", aud: [a, b], level: 7 }
${rest}auth: { bearer: "\${{ jwt.app }}" }`;
const env = { ISSUER: 'example-app' };

function tokenOf({ seen }: TestServer, index = 0): string {
  return (seen[index]?.headers.authorization ?? '').replace(/^Bearer /, '');
}

describe('a token is signed', () => {
  test.each([
    ['RS256', 'PKCS#8', pkcs8, rsa.publicKey],
    ['RS384', 'PKCS#1', rsa.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(), rsa.publicKey],
    ['RS512', 'PKCS#8 in one line', pkcs8.trim().replaceAll('\n', '\\n'), rsa.publicKey],
    ['PS256', 'JWK', JSON.stringify(rsa.privateKey.export({ format: 'jwk' })), rsa.publicKey],
    ['ES256', 'SEC 1', p256.privateKey.export({ type: 'sec1', format: 'pem' }).toString(), p256.publicKey],
    ['ES384', 'PKCS#8', p384.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(), p384.publicKey],
    ['EdDSA', 'JWK', JSON.stringify(ed25519.privateKey.export({ format: 'jwk' })), ed25519.publicKey],
    ['HS256', 'text', 'example-shared-secret-of-32-bytes', Buffer.from('example-shared-secret-of-32-bytes')],
    [
      'HS512',
      'JWK',
      JSON.stringify({ kty: 'oct', k: Buffer.alloc(64, 7).toString('base64url') }),
      Buffer.alloc(64, 7),
    ],
  ])('by %s with a key in %s', async (alg, _form, KEY, verifier) => {
    const server = await serve();
    const clock = createFakeClock(1_800_000_000_000);
    const connection = connectWritten(
      server.origin,
      { upstream: sent(alg), secrets: { KEY }, env },
      { clock },
    );
    replied(await connection.perform());
    const { payload, protectedHeader }: JWTVerifyResult = await jwtVerify(tokenOf(server), verifier, {
      algorithms: [alg],
      currentDate: new Date(clock.now()),
    });
    expect(protectedHeader).toEqual({ alg, kid: 'key-1', typ: 'JWT' });
    expect(payload).toEqual({
      iss: 'example-app',
      aud: ['a', 'b'],
      level: 7,
      iat: 1_799_999_970,
      exp: 1_799_999_970 + 300,
    });
  });

  test('with an encrypted key', async () => {
    const server = await serve();
    const KEY = rsa.privateKey
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'example-passphrase' })
      .toString();
    const upstream = sent('RS256').replace('    header:', '    passphrase: ${{ secrets.PASS }}\n    header:');
    const connection = connectWritten(server.origin, {
      upstream,
      secrets: { KEY, PASS: 'example-passphrase' },
      env,
    });
    replied(await connection.perform());
    await jwtVerify(tokenOf(server), rsa.publicKey);
    connection.values.secrets.PASS = 'wrong-passphrase';
    const result = failed(await connection.perform());
    expect(result).toMatchObject({ code: 'credential', sent: false });
    expect(result.reason).toMatch(
      /^jwt\.app: the key is no private key in PEM or JWK, or its passphrase is wrong( \(ERR_\w+\))?$/,
    );
  });
});

describe('a token', () => {
  test('is used for half of its life and then made anew', async () => {
    const server = await serve();
    const clock = createFakeClock();
    const upstream = sent('ES256', '    expires: 20m\n');
    const KEY = p256.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
    const connection = connectWritten(server.origin, { upstream, secrets: { KEY }, env }, { clock });
    for (const wait of [0, 580_000, 10_000]) {
      await clock.advance(wait);
      replied(await connection.perform());
    }
    expect(tokenOf(server, 1)).toBe(tokenOf(server, 0));
    expect(tokenOf(server, 2)).not.toBe(tokenOf(server, 0));
    const { iat = 0, exp = 0 } = decodeJwt(tokenOf(server, 2));
    expect(exp - iat).toBe(1200);
    expect(connection.secrets()).toEqual(
      expect.arrayContaining([tokenOf(server, 0), tokenOf(server, 2), KEY]),
    );
  });

  test('is made anew at once when its key has changed', async () => {
    const server = await serve();
    const connection = connectWritten(server.origin, {
      upstream: sent('HS256'),
      secrets: { KEY: 'first-shared-secret' },
      env,
    });
    replied(await connection.perform());
    connection.values.secrets.KEY = 'second-shared-secret';
    replied(await connection.perform());
    await jwtVerify(tokenOf(server, 1), Buffer.from('second-shared-secret'));
  });

  test('has a new jti for every request when it has one', async () => {
    const server = await serve();
    const upstream = sent('HS256', '    jti: true\n');
    const connection = connectWritten(server.origin, {
      upstream,
      secrets: { KEY: 'example-shared-secret' },
      env,
    });
    for (const _time of [1, 2]) replied(await connection.perform());
    const [first, second] = [0, 1].map((index) => decodeJwt(tokenOf(server, index)).jti);
    expect(first).toMatch(/^[0-9a-f-]{36}$/);
    expect(second).not.toBe(first);
  });

  test('is not made for a request that does not read it', async () => {
    const server = await serve();
    const connection = connectWritten(server.origin, {
      upstream: sent('RS256'),
      secrets: { KEY: 'this is no key' },
      env,
      steps: ['{ request: GET /public, auth: none }', '{ request: GET /jobs }'],
    });
    replied(await connection.perform(0));
    expect(failed(await connection.perform(1))).toMatchObject({ code: 'credential', sent: false });
  });
});

/** Exchanges a signed token for an access token, as RFC 7523 says. */
async function issuer(audience: string): Promise<TestServer> {
  const server = await serve(async (request, response) => {
    const assertion = new URLSearchParams(request.body).get('assertion') ?? '';
    try {
      const { payload } = await jwtVerify(assertion, rsa.publicKey, { audience });
      json(response, 200, { access_token: `token of ${payload.iss}`, expires_in: 3600 });
    } catch (error) {
      json(response, 400, { error: String(error) });
    }
  });
  return server;
}

test('a service account is read out of its JSON key file, and its token exchanged', async () => {
  const server = await serve();
  const tokens = await issuer('https://tokens.example.com/token');
  const KEY_FILE_CONTENT = JSON.stringify(
    {
      type: 'service_account',
      client_email: 'runner@project.example.com',
      private_key_id: 'key-7',
      private_key: pkcs8,
      token_uri: 'https://tokens.example.com/token',
    },
    null,
    2,
  );
  const connection = connectWritten(server.origin, {
    upstream: `jwt:
  account:
    alg: RS256
    key: \${{ parseJson(secrets.ACCOUNT).private_key }}
    header: { kid: "\${{ parseJson(secrets.ACCOUNT).private_key_id }}" }
    claims:
      iss: \${{ parseJson(secrets.ACCOUNT).client_email }}
      aud: \${{ parseJson(secrets.ACCOUNT).token_uri }}
      scope: https://auth.example.com/jobs
    expires: 1h
login:
  request: POST \${{ env.ISSUER }}/token
  form: { grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer", assertion: "\${{ jwt.account }}" }
  capture: { token: response.body.access_token }
  expires: response.body.expires_in
auth: { bearer: "\${{ login.token }}" }`,
    secrets: { ACCOUNT: KEY_FILE_CONTENT },
    env: { ISSUER: tokens.origin },
  });
  replied(await connection.perform());
  expect(server.seen[0]?.headers.authorization).toBe('Bearer token of runner@project.example.com');
  const assertion = new URLSearchParams(tokens.seen[0]?.body).get('assertion') ?? '';
  expect(decodeProtectedHeader(assertion).kid).toBe('key-7');
  // The key inside the secret is kept out of what is shown, too.
  expect(connection.secrets()).toContain(pkcs8);
});

test('an app exchanges its token for one of an installation, on the upstream itself', async () => {
  const server = await serve(async (request, response) => {
    if (request.url !== '/app/installations/42/access_tokens') return json(response, 200, {});
    const token = (request.headers.authorization ?? '').replace('Bearer ', '');
    const { payload } = await jwtVerify(token, createPublicKey(rsa.privateKey));
    json(response, 201, {
      token: `installation-token-of-${payload.iss}`,
      expires_at: new Date(Date.now() + 3_600_000).toISOString(),
    });
  });
  const connection = connectWritten(server.origin, {
    upstream: `jwt:
  app: { alg: RS256, key: "\${{ secrets.KEY }}", claims: { iss: "\${{ env.ISSUER }}" }, expires: 9m }
login:
  request: POST /app/installations/\${{ env.INSTALLATION }}/access_tokens
  auth: { bearer: "\${{ jwt.app }}" }
  capture: { token: response.body.token }
  expires: timestamp(response.body.expires_at)
auth: { bearer: "\${{ login.token }}" }`,
    secrets: { KEY: pkcs8 },
    env: { ...env, INSTALLATION: '42' },
  });
  for (const _time of [1, 2]) replied(await connection.perform());
  expect(server.seen.map(({ url }) => url)).toEqual([
    '/app/installations/42/access_tokens',
    '/jobs',
    '/jobs',
  ]);
  expect(server.seen[1]?.headers.authorization).toBe('Bearer installation-token-of-example-app');
});

describe('a key that does not fit', () => {
  const fault = (alg: string, KEY: string): string | undefined => {
    const config = configOf({ upstream: sent(alg), secrets: { KEY }, env }) as HttpUpstream;
    return createHttpDriver().verify(config, {
      env: { ...env, BASE: 'https://api.example.com' },
      secrets: { KEY },
    });
  };

  test.each([
    [
      'RS256',
      p256.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      'the key is of the type P-256, but RS256 wants rsa',
    ],
    [
      'ES384',
      p256.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
      'the key is of the type P-256, but ES384 wants P-384',
    ],
    ['EdDSA', pkcs8, 'the key is of the type rsa, but EdDSA wants ed25519'],
    [
      'RS256',
      generateKeyPairSync('rsa', { modulusLength: 1024 })
        .privateKey.export({ type: 'pkcs8', format: 'pem' })
        .toString(),
      'an RSA key must have 2048 bits or more',
    ],
  ])('is told at start for %s', (alg, key, message) => {
    expect(fault(alg, key)).toBe(`jwt.app: ${message}`);
  });

  test.each([
    ['no key at all'],
    ['-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----'],
    ['{"kty":"RSA"}'],
  ])('is told without the text of the secret: %j', (key) => {
    const message = fault('RS256', key);
    expect(message).toMatch(/^jwt\.app: the key is no private key in PEM or JWK, or its passphrase is wrong/);
    expect(message).not.toContain('AAAA');
  });

  test('is no fault when it fits', () => {
    expect(fault('RS256', pkcs8)).toBeUndefined();
  });
});

describe('what is written wrong', () => {
  const jwt = (fields: string): string => `jwt: { app: { ${fields} } }`;
  const key = 'key: "${{ secrets.KEY }}"';

  test.each([
    [jwt(`alg: RS257, ${key}`), 'upstream.jwt.app.alg: must be one of RS256, RS384'],
    [jwt('alg: RS256'), 'upstream.jwt.app.key: is missing'],
    [jwt('alg: RS256, key: "a text"'), 'upstream.jwt.app.key: must come from a secret'],
    [jwt(`alg: RS256, ${key}, expires: 5s`), 'upstream.jwt.app.expires: must be between 10s and 1d'],
    [jwt(`alg: RS256, ${key}, claims: { exp: 7 }`), 'upstream.jwt.app.claims.exp: exp is set by taskferry'],
    [
      jwt(`alg: RS256, ${key}, jti: true, claims: { jti: a }`),
      'upstream.jwt.app.claims.jti: jti is set by taskferry',
    ],
    [
      jwt(`alg: RS256, ${key}, header: { alg: none }`),
      'upstream.jwt.app.header.alg: alg is set by taskferry',
    ],
    [
      jwt(`alg: RS256, ${key}, claims: [a]`),
      'upstream.jwt.app.claims: must be a map, or a hole that gives a map',
    ],
    [
      `${jwt(`alg: RS256, ${key}`)}\nauth: { bearer: "\${{ jwt.ap }}" }`,
      'upstream.auth.bearer: jwt has no "ap", did you mean "app"?',
    ],
    ['auth: { bearer: "${{ jwt.app }}" }', 'upstream.auth.bearer: jwt has no "app"'],
  ])('%s', (upstream, fault) => {
    const faults = faultsOf({ upstream, secrets: { KEY: '' } });
    expect(faults).toHaveLength(1);
    expect(faults[0]).toContain(fault);
  });
});
