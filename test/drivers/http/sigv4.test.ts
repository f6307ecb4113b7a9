// AWS Signature Version 4: published examples, an independent implementation, and what goes out on the wire.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto';
import { SignatureV4 } from '@smithy/signature-v4';
import { describe, expect, test } from 'vitest';
import { signatureHeaders } from '../../../src/drivers/http/sigv4.ts';
import { createFakeClock } from '../../helpers/fake-clock.ts';
import { json, type SeenRequest } from '../../helpers/http-server.ts';
import { replied, serve } from './fixture.ts';
import { connectWritten, faultsOf } from './written.ts';

// The credentials of the examples in the service's own documentation.
const example = {
  region: 'us-east-1',
  service: 's3',
  accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
  secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  sessionToken: '',
};

/** https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html */
test.each([
  ['?lifecycle', 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
  ['?max-keys=2&prefix=J', '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7'],
])('the published example %s has the published signature', async (query, signature) => {
  const url = new URL(`https://examplebucket.s3.amazonaws.com/${query}`);
  const headers = await signatureHeaders(
    { method: 'GET', url, headers: { accept: '*/*' }, body: undefined },
    example,
    Date.UTC(2013, 4, 24),
  );
  expect(headers).toEqual({
    authorization: `AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=${signature}`,
    'x-amz-content-sha256': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    'x-amz-date': '20130524T000000Z',
  });
});

class Sha256 {
  #hash: Hash | Hmac;
  readonly #secret: string | Uint8Array | undefined;

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret === undefined || typeof secret === 'string' ? secret : bytesOf(secret);
    this.#hash = this.#fresh();
  }
  #fresh(): Hash | Hmac {
    return this.#secret === undefined ? createHash('sha256') : createHmac('sha256', this.#secret);
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    this.#hash = this.#fresh();
  }
}

function bytesOf(data: ArrayBuffer | ArrayBufferView): Uint8Array {
  return data instanceof ArrayBuffer
    ? new Uint8Array(data)
    : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

/** What the SDK's own signer says to the request as a server has seen it. */
async function expected(
  seen: SeenRequest,
  { sessionToken, service, region, ...keys }: typeof example,
  at: Date,
): Promise<{ [name: string]: string }> {
  const url = new URL(seen.url, `http://${seen.headers.host}`);
  const signed = Object.entries(seen.headers).filter(
    ([name]) => name === 'host' || name === 'content-type' || /^x-amz-(?!date|content|security)/.test(name),
  );
  const query: { [name: string]: string[] } = {};
  for (const [name, value] of url.searchParams) query[name] = [...(query[name] ?? []), value];
  const signer = new SignatureV4({
    credentials: { ...keys, ...(sessionToken !== '' && { sessionToken }) },
    region,
    service,
    sha256: Sha256 as never,
    uriEscapePath: service !== 's3',
    applyChecksum: true,
  });
  const { headers } = await signer.sign(
    {
      method: seen.method,
      protocol: url.protocol,
      hostname: url.hostname,
      port: Number(url.port),
      path: url.pathname,
      query,
      headers: Object.fromEntries(signed.map(([name, value]) => [name, String(value)])),
      body: seen.body,
    },
    { signingDate: at },
  );
  return headers;
}

const upstream = `auth:
  sigv4:
    region: \${{ env.REGION }}
    service: \${{ env.SERVICE }}
    accessKeyId: \${{ secrets.ACCESS_KEY }}
    secretAccessKey: \${{ secrets.SECRET_KEY }}
`;
const secrets = { ACCESS_KEY: example.accessKeyId, SECRET_KEY: example.secretAccessKey };
const env = { REGION: 'eu-central-1', SERVICE: 'batch' };
const credentials = { ...example, region: 'eu-central-1', service: 'batch' };

describe('a request on the wire has the signature that the SDK gives it', () => {
  test.each([
    ['GET without a query', 'GET /v1/jobs', '', 'batch'],
    [
      'a query out of order, with spaces and repeated names',
      'GET /v1/jobs',
      "query: { z: 'a b', a: [2, 1], é: '*~!()' }",
      'batch',
    ],
    ['a path with encoded characters', 'GET /v1/jobs/${{ args.url }}/x', '', 'batch'],
    ['a JSON body', 'POST /v1/submitjob', 'json: { jobName: "näme", n: 1 }', 'batch'],
    ['a form', 'POST /', 'form: { Action: Run, Version: 2012-11-05 }', 'sqs'],
    [
      'a JSON-RPC target',
      'POST /',
      'headers: { X-Amz-Target: "AWSStepFunctions.StartExecution", Content-Type: application/x-amz-json-1.0 }, json: {}',
      'states',
    ],
    ['an object store', 'PUT /bucket/a%20b.txt', 'text: some text', 's3'],
  ])('%s', async (_what, request, rest, service) => {
    const server = await serve();
    const clock = createFakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
    const connection = connectWritten(
      server.origin,
      {
        upstream,
        secrets,
        env: { ...env, SERVICE: service },
        steps: [`{ request: "${request}"${rest === '' ? '' : `, ${rest}`} }`],
      },
      { clock },
    );
    replied(await connection.perform(0, { args: { url: 'a/b c+d=é' } }));
    const [seen] = server.seen;
    if (seen === undefined) throw new Error('nothing came');
    const wanted = await expected(seen, { ...credentials, service }, new Date(clock.now()));
    expect(seen.headers).toMatchObject({
      authorization: wanted.authorization,
      'x-amz-date': '20260102T030405Z',
      'x-amz-content-sha256': createHash('sha256').update(seen.body).digest('hex'),
    });
  });

  test('with a session token', async () => {
    const server = await serve();
    const clock = createFakeClock();
    const connection = connectWritten(
      server.origin,
      {
        upstream: `${upstream}    sessionToken: \${{ secrets.SESSION }}`,
        secrets: { ...secrets, SESSION: 'example-session-token' },
        env,
      },
      { clock },
    );
    replied(await connection.perform());
    const [seen] = server.seen;
    if (seen === undefined) throw new Error('nothing came');
    const wanted = await expected(
      seen,
      { ...credentials, sessionToken: 'example-session-token' },
      new Date(clock.now()),
    );
    expect(seen.headers).toMatchObject({
      authorization: wanted.authorization,
      'x-amz-security-token': 'example-session-token',
    });
  });
});

test('every try has a signature of its own time', async () => {
  const server = await serve();
  const clock = createFakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const written = { upstream, secrets, env };
  // The wait for a place in the budget comes before the signature, not after it.
  const budget = {
    async acquire() {
      clock.jump(60_000);
      return () => {};
    },
    pauseUntil() {},
  };
  server.handle((_request, response) => json(response, server.seen.length === 1 ? 401 : 200, {}));
  const connection = connectWritten(server.origin, written, {
    clock,
    budget: budget as never,
    refreshSecrets: () => true,
  });
  replied(await connection.perform());
  expect(server.seen.map(({ headers }) => headers['x-amz-date'])).toEqual([
    '20260102T030505Z',
    '20260102T030605Z',
  ]);
});

test('no signature goes to another host, or beside an Authorization of the step', async () => {
  const server = await serve();
  const files = await serve();
  const connection = connectWritten(server.origin, {
    upstream: `${upstream}allowHosts: ["127.0.0.1:${files.port}"]`,
    secrets,
    env,
    steps: [
      '{ request: "GET ${{ args.url }}" }',
      '{ request: GET /jobs, headers: { Authorization: Bearer x } }',
      '{ request: GET /jobs, auth: none }',
    ],
  });
  replied(await connection.perform(0, { args: { url: `${files.origin}/a` } }));
  for (const index of [1, 2]) replied(await connection.perform(index));
  for (const { headers } of [...files.seen, ...server.seen]) expect(headers['x-amz-date']).toBeUndefined();
  expect(server.seen[0]?.headers.authorization).toBe('Bearer x');
});

test('every field but the session token is required', () => {
  expect(faultsOf({ upstream: 'auth: { sigv4: { region: a, accesKeyId: b, secretAccessKey: c } }' })).toEqual(
    [
      'upstream.auth.sigv4.service: is missing',
      'upstream.auth.sigv4.accessKeyId: is missing',
      'upstream.auth.sigv4.accesKeyId: unknown key "accesKeyId", did you mean "accessKeyId"?',
    ],
  );
});
