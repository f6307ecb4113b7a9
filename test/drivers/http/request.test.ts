// What a request carries: query, headers, bodies and credentials, as a real server sees them.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the templates.

import { describe, expect, test } from 'vitest';
import type { HttpAuth, HttpBody, HttpStep } from '../../../src/drivers/http/compiled.ts';
import { TaskferryError } from '../../../src/errors.ts';
import type { Json } from '../../../src/exact-json.ts';
import { json, type SeenRequest } from '../../helpers/http-server.ts';
import { fixed, text, value } from '../../helpers/templates.ts';
import {
  connect,
  credentials,
  failed,
  getJob,
  postJob,
  replied,
  serve,
  step,
  type UpstreamParts,
} from './fixture.ts';

async function sent(
  rest: Partial<HttpStep>,
  parts: UpstreamParts = {},
  scope: { [root: string]: Json } = {},
): Promise<SeenRequest> {
  const server = await serve();
  const connection = connect({ baseUrl: server.origin, ...parts }, credentials({ TOKEN: 's3cret-value' }));
  replied(await connection.perform(step(text`/jobs?fixed=1`, rest), scope));
  const [request] = server.seen;
  if (request === undefined) throw new Error('nothing came');
  return request;
}

async function refusal(rest: Partial<HttpStep>, parts: UpstreamParts = {}): Promise<string> {
  const reply = failed(
    await connect(parts, credentials({ TOKEN: 's3cret-value' })).perform(step(text`/jobs`, rest), {}),
  );
  expect(reply).toMatchObject({ code: 'invalid_request', sent: false });
  return reply.reason;
}

describe('a query', () => {
  test('repeats the key for lists and leaves out null', async () => {
    const query = value({ tag: ['a', 'b c'], none: null, n: 9007199254740993n, on: true, empty: '' });
    expect((await sent({ query })).url).toBe(
      '/jobs?fixed=1&tag=a&tag=b%20c&n=9007199254740993&on=true&empty=',
    );
  });

  test('encodes names and values as data', async () => {
    const query = value({ 'a&b': 'c=d#e%f' });
    expect((await sent({ query })).url).toBe('/jobs?fixed=1&a%26b=c%3Dd%23e%25f');
  });

  test('refuses a map as a value, naming it', async () => {
    expect(await refusal({ query: value({ filter: { eq: 'x' } }) })).toContain('query.filter');
  });

  test("takes the adapter's parameters unless the step has its own", async () => {
    const parts = {
      query: [
        { name: 'v', value: fixed('2') },
        { name: 'fixed', value: fixed('9') },
      ],
    };
    expect((await sent({}, parts)).url).toBe('/jobs?fixed=1&v=2');
    expect((await sent({ query: value({ v: '3' }) }, parts)).url).toBe('/jobs?fixed=1&v=3');
  });
});

describe('headers', () => {
  test("the step's win over the adapter's, and taskferry's own over both", async () => {
    const server = await serve();
    const connection = connect({
      baseUrl: server.origin,
      headers: [
        { name: 'X-Version', value: fixed('1') },
        { name: 'X-Both', value: fixed('upstream') },
      ],
    });
    const headers = [
      { name: 'x-both', value: fixed('step') },
      { name: 'Idempotency-Key', value: fixed('from-step') },
    ];
    await connection.perform(
      step(text`/jobs`, { headers }),
      {},
      { headers: { 'idempotency-key': 'from-us' } },
    );
    expect(server.seen[0]?.headers).toMatchObject({
      'x-version': '1',
      'x-both': 'step',
      'idempotency-key': 'from-us',
      'accept-encoding': 'identity',
    });
  });

  test.each(['a\r\nX-Evil: 1', 'a\nb', 'a\u0000b', 'naïve', '☃'])('the value %j is refused', async (bad) => {
    const reason = await refusal({ headers: [{ name: 'X-Name', value: fixed(bad) }] });
    expect(reason).toContain('X-Name');
    expect(reason).not.toContain(bad);
  });

  test.each(['', 'a b', 'a:b', 'a\r\nb'])('the name %j is refused', async (name) => {
    expect(await refusal({ headers: [{ name, value: fixed('x') }] })).toContain('is no header name');
  });

  test.each(['Host', 'Content-Length', 'Transfer-Encoding', 'Connection'])(
    '%s can not be set',
    async (name) => {
      expect(await refusal({ headers: [{ name, value: fixed('x') }] })).toContain(`the header ${name}`);
    },
  );

  test('a compressed reply can not be asked for', async () => {
    const headers = [{ name: 'Accept-Encoding', value: fixed('gzip') }];
    expect((await sent({ headers })).headers['accept-encoding']).toBe('identity');
  });
});

describe('a body', () => {
  const post = (body: HttpBody, rest: Partial<HttpStep> = {}): Promise<SeenRequest> =>
    sent({ method: 'POST', body, ...rest });

  test('of JSON is a structure with exact numbers', async () => {
    const request = await post({
      kind: 'json',
      value: value({ id: 7421900188888888881n, t: 'a"b\n', none: null }),
    });
    expect(request.body).toBe('{"id":7421900188888888881,"t":"a\\"b\\n","none":null}');
    expect(request.headers['content-type']).toBe('application/json');
    expect(request.headers['content-length']).toBe(String(request.body.length));
  });

  test('of JSON may have the media type that the step names', async () => {
    const headers = [{ name: 'Content-Type', value: fixed('application/merge-patch+json') }];
    const request = await post({ kind: 'json', value: value({}) }, { headers, method: 'PATCH' });
    expect(request.headers['content-type']).toBe('application/merge-patch+json');
  });

  test('of JSON without a value is an error', async () => {
    expect(
      await refusal({ method: 'POST', body: { kind: 'json', value: value('${{ env.?NOTHING }}') } }),
    ).toContain('json');
  });

  test('of a form can not be broken out of', async () => {
    const request = await post({
      kind: 'form',
      value: value({ a: 'x&b=1', list: ['1', '2'], none: null }),
    });
    expect(request.body).toBe('a=x%26b%3D1&list=1&list=2');
    expect(request.headers['content-type']).toBe('application/x-www-form-urlencoded');
  });

  test('of text goes as UTF-8 with its media type', async () => {
    const request = await post({ kind: 'text', value: fixed('zespół'), contentType: 'text/yaml' });
    expect(request.body).toBe('zespół');
    expect(request.headers['content-type']).toBe('text/yaml');
  });

  test('of parts can be read back, whatever the names hold', async () => {
    const multipart = (): HttpBody => ({
      kind: 'multipart',
      parts: [
        { name: 'purpose', file: undefined, data: fixed('batch') },
        {
          name: 'file',
          file: { filename: fixed('a"b\r\nX-Evil: 1.jsonl'), contentType: 'application/jsonl' },
          data: fixed('{"a":1}\n--x\r\n'),
        },
      ],
    });
    const headers = [{ name: 'Content-Type', value: fixed('text/plain') }];
    const request = await post(multipart(), { headers });
    const form = await new Response(request.body, {
      headers: { 'content-type': request.headers['content-type'] ?? '' },
    }).formData();
    expect(form.get('purpose')).toBe('batch');
    const file = form.get('file');
    if (!(file instanceof File)) throw new Error('no file came');
    expect(file.type).toBe('application/jsonl');
    expect(await file.text()).toBe('{"a":1}\n--x\r\n');
    expect(request.body).not.toMatch(/^X-Evil/m);
    expect((await post(multipart())).body).toBe(request.body);
  });

  test('is left out where there is none, and a POST then says length 0', async () => {
    const request = await sent({ method: 'POST' });
    expect(request.headers['content-length']).toBe('0');
    expect(request.headers['content-type']).toBeUndefined();
  });
});

describe('auth', () => {
  const token = text`${'secrets.TOKEN'}`;

  test.each<[string, HttpAuth, Partial<SeenRequest>]>([
    ['bearer', { kind: 'bearer', token }, { headers: { authorization: 'Bearer s3cret-value' } }],
    [
      'basic',
      { kind: 'basic', username: fixed('zespół'), password: token },
      { headers: { authorization: `Basic ${Buffer.from('zespół:s3cret-value').toString('base64')}` } },
    ],
    [
      'header',
      { kind: 'header', name: 'X-Api-Key', value: token },
      { headers: { 'x-api-key': 's3cret-value' } },
    ],
    ['query', { kind: 'query', name: 'key', value: token }, { url: '/jobs?fixed=1&key=s3cret-value' }],
  ])('by %s', async (_kind, auth, expected) => {
    expect(await sent({}, { auth })).toMatchObject(expected);
  });

  test('by query replaces a parameter of the same name', async () => {
    const auth: HttpAuth = { kind: 'query', name: 'fixed', value: token };
    expect((await sent({}, { auth })).url).toBe('/jobs?fixed=s3cret-value');
  });

  test('leaves no credential in the URL that expressions see', async () => {
    const server = await serve();
    const connection = connect(
      {
        baseUrl: server.origin,
        auth: { kind: 'query', name: 'key', value: token },
        query: [{ name: 'tenant', value: token }],
      },
      credentials({ TOKEN: 's3cret-value' }),
    );
    const query = value({ t: '${{ secrets.TOKEN }}' });
    expect(replied(await connection.perform(step(text`/jobs?a=1`), {})).response.url).toBe(
      `${server.origin}/jobs?a=1`,
    );
    expect(replied(await connection.perform(step(text`/jobs`, { query }), {})).response.url).toBe(
      `${server.origin}/jobs`,
    );
  });

  test('a credential that breaks a header is named, not shown', async () => {
    const connection = connect({ auth: { kind: 'bearer', token } }, credentials({ TOKEN: 'two\nlines' }));
    const { reason } = failed(await connection.perform(getJob, {}));
    expect(reason).toContain('authorization');
    expect(reason).not.toContain('two');
  });

  test('a missing variable is a credential failure, and nothing is sent', async () => {
    const server = await serve();
    const connection = connect(
      { baseUrl: server.origin, auth: { kind: 'bearer', token } },
      {
        variables: () => {
          throw new TaskferryError('secret_missing', 'the variable TOKEN is not set');
        },
        refreshSecrets: () => false,
      },
    );
    expect(await connection.perform(postJob, {})).toEqual({
      kind: 'failed',
      code: 'credential',
      sent: false,
      reason: 'the variable TOKEN is not set',
    });
    expect(server.seen).toEqual([]);
  });

  test('a 401 reads the secrets again and repeats the request once when one changed', async () => {
    const server = await serve((request, response) =>
      json(response, request.headers.authorization === 'Bearer new' ? 200 : 401, {}),
    );
    let secret = 'old';
    let refreshes = 0;
    const connection = connect(
      { baseUrl: server.origin, auth: { kind: 'bearer', token } },
      {
        variables: () => ({ env: {}, secrets: { TOKEN: secret } }),
        refreshSecrets: () => {
          refreshes++;
          secret = 'new';
          return true;
        },
      },
    );
    expect(replied(await connection.perform(postJob, {})).response.status).toBe(200n);
    expect(server.seen).toHaveLength(2);
    expect(refreshes).toBe(1);
  });

  test.each([
    ['stays', false, 1],
    ['is refused too', true, 2],
  ])('a 401 is given as it is when the secret %s', async (_case, changed, requests) => {
    const server = await serve((_request, response) => json(response, 401, { message: 'no' }));
    const connection = connect(
      { baseUrl: server.origin },
      { ...credentials(), refreshSecrets: () => changed },
    );
    expect(replied(await connection.perform(getJob, {})).response).toMatchObject({
      status: 401n,
      body: { message: 'no' },
    });
    expect(server.seen).toHaveLength(requests);
  });
});
