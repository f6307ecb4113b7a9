import { describe, expect, it } from 'vitest';
import type { Handler } from '../helpers/http-server.ts';
import {
  type AdapterParts,
  adapted,
  always,
  createWith,
  findByKey,
  hangUp,
  page,
  plainCreate,
  routes,
  sampleKey,
  silence,
  viewWith,
  withToken,
} from './adapted.ts';

const fresh = viewWith({ job: {} });

async function create(handler: Handler, parts: AdapterParts = {}, environment = {}) {
  const { upstream, server } = await adapted(parts, { handler, environment });
  return { outcome: await upstream.createStep(fresh, 0), server };
}

describe('a create step', () => {
  it('keeps every digit of an id above 2^53', async () => {
    const { outcome } = await create(always(201, '{"id":7421900188888888881}'));
    expect(outcome).toEqual({ kind: 'done', job: { id: 7421900188888888881n } });
  });

  it('sends task.key, in the body and in the header that the adapter names', async () => {
    const { server } = await create(always(201, { id: 1 }), {
      create: createWith('idempotency: { header: X-Request-Key }'),
    });
    expect(server.seen[0]?.headers['x-request-key']).toBe(sampleKey);
    expect(server.seen[0]?.body).toBe(JSON.stringify({ key: sampleKey }));
  });

  it.each<[string, Handler, RegExp]>([
    ['a redirect, naming where it leads', always(301, '', { location: '/jobs/' }), /HTTP 301 to \/jobs\//],
    [
      'a 307 too',
      always(307, '', { location: 'http://other.test/x?sig=1' }),
      /to http:\/\/other\.test\/x \(/,
    ],
    ['400 with the upstream’s words', always(400, { error: 'bad flag' }), /HTTP 400: \{"error":"bad flag"\}/],
    ['401', always(401, { message: 'who are you' }), /HTTP 401: .*who are you/],
    ['403 that is no rate limit', always(403, { message: 'not yours' }), /HTTP 403/],
    ['404 with a page', page, /HTTP 404.*no such backend/],
    ['409', always(409, { message: 'already running' }), /already running/],
    [
      '422 that names an input nobody declared',
      always(422, { message: 'Unexpected inputs provided: ["corr"]' }),
      /Unexpected inputs provided: \[\\?"corr/,
    ],
  ])('takes %s for a refusal', async (_name, handler, message) => {
    const { outcome } = await create(handler);
    expect(outcome).toMatchObject({ kind: 'refused', message: expect.stringMatching(message) });
  });

  it('is refused when nobody listens', async () => {
    const { upstream } = await adapted({}, { environment: { UPSTREAM: 'http://127.0.0.1:9' } });
    expect(await upstream.createStep(fresh, 0)).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining('127.0.0.1:9'),
      judged: false,
    });
  });

  it.each<[string, Handler]>([
    ['500', always(500, { error: 'oops' })],
    ['502', always(502, '<html>bad gateway</html>', { 'content-type': 'text/html' })],
    ['503', always(503, '')],
    ['408', always(408, '')],
    ['425', always(425, '')],
    ['a connection closed without a reply', hangUp],
    ['silence after the request', silence],
    ['a 201 that is no JSON', always(201, '<html>welcome</html>')],
    ['a 201 cut in the middle', always(201, '{"id":1', { 'content-length': '100' })],
    ['a 201 that lacks the id', always(201, { ok: true })],
    ['a 201 whose id is null', always(201, { id: null })],
    ['a 204', always(204, '')],
    ['a 200 whose body is an error', always(200, { error: { message: 'no such project' } })],
  ])('takes %s for a doubt', async (name, handler) => {
    const { outcome } = await create(name.includes('cut') ? cut : handler, {
      upstream: '  timeouts: { headers: 200ms, body: 200ms }',
    });
    expect(outcome).toMatchObject({ kind: 'doubtful', reason: expect.stringMatching(/\S/) });
  });

  it('takes a 2xx that fails expect for a doubt', async () => {
    const { outcome } = await create(always(202, { id: 1 }), {
      create: createWith('expect: response.status == 201'),
    });
    expect(outcome).toMatchObject({
      kind: 'doubtful',
      reason: 'expect (response.status == 201) does not hold for HTTP 202: {"id":1}',
    });
  });

  it('takes a 4xx that expect accepts for a success', async () => {
    const { outcome } = await create(always(409, { id: 5 }), {
      create: createWith('expect: response.status in [201, 409]'),
    });
    expect(outcome).toEqual({ kind: 'done', job: { id: 5n } });
  });

  it.each<[string, Handler, number | undefined]>([
    ['429 with a time', always(429, '', { 'retry-after': '7' }), 7000],
    ['429 without one', always(429, ''), undefined],
    ['a 403 that is a rate limit', always(403, { message: 'secondary rate limit' }), undefined],
  ])('is tried later after %s', async (_name, handler, retryAfterMs) => {
    expect((await create(handler)).outcome).toMatchObject({ kind: 'later', retryAfterMs });
  });

  it('names the variable that is missing and sends nothing', async () => {
    const { outcome, server } = await create(always(201, { id: 1 }), {
      ...withToken,
    });
    expect(outcome).toMatchObject({ kind: 'refused', message: expect.stringContaining('TOKEN') });
    expect(server.seen).toHaveLength(0);
  });

  it('never shows a secret that the upstream echoes in an error, not even half of it at the cut', async () => {
    const secret = 'tok-0123456789abcdefghij';
    for (const padding of [0, 970, 975, 980, 985, 990]) {
      const { outcome } = await create(always(400, { error: `${'x'.repeat(padding)}${secret}` }), withToken, {
        TOKEN: secret,
      });
      expect(JSON.stringify(outcome)).not.toContain(secret.slice(0, 8));
    }
  });

  it('is left out when its condition does not hold', async () => {
    const { outcome, server } = await create(always(201, { id: 1 }), {
      create: `    create:
      - when: has(args.name)
        request: PUT /names/\${{ args.name }}
      - request: POST /jobs
        capture: { id: response.body.id }`,
    });
    expect(outcome).toEqual({ kind: 'done', job: {} });
    expect(server.seen).toHaveLength(0);
  });

  it('counts a capture of more than 4 KiB as missing', async () => {
    const { outcome } = await create(always(201, { id: 'x'.repeat(5000) }));
    expect(outcome).toMatchObject({ kind: 'doubtful', reason: 'the reply to create lacks id' });
  });
});

/** Promises more bytes than it sends. */
const cut: Handler = (_request, response) => {
  response.writeHead(201, { 'content-type': 'application/json', 'content-length': '100' });
  response.write('{"id":1');
  setTimeout(() => response.destroy(), 20);
};

describe('a look-up', () => {
  async function find(handler: Handler, recovery = findByKey) {
    const { upstream, server } = await adapted(
      { create: createWith(recovery) },
      { handler: routes({ 'GET /jobs': handler }) },
    );
    return { found: await upstream.find(fresh, 0), server };
  }

  it('asks by task.key and gives the captures of the job it finds', async () => {
    const { found, server } = await find(always(200, '{"jobs":[{"id":9007199254740993}]}'));
    expect(found).toEqual({ kind: 'found', job: { id: 9007199254740993n } });
    expect(server.seen[0]?.url).toBe(`/jobs?key=${sampleKey}`);
  });

  const expecting = findByKey.replace(
    'within: 5s',
    'within: 5s\n        expect: response.body.jobs.size() > 0',
  );
  it.each<[string, Handler, string]>([
    ['an empty list', always(200, { jobs: [] }), findByKey],
    ['a list that expect finds empty', always(200, { jobs: [] }), expecting],
    ['a 404 of the upstream itself', always(404, { error: 'none' }), findByKey],
  ])('finds none in %s', async (_name, handler, recovery) => {
    expect((await find(handler, recovery)).found).toEqual({ kind: 'none' });
  });

  it.each<[string, Handler, string]>([
    ['503', always(503, ''), findByKey],
    ['429', always(429, '', { 'retry-after': '3' }), findByKey],
    ['401', always(401, ''), findByKey],
    ['a 404 page of a balancer', page, findByKey],
    ['a page with status 200', always(200, '<html></html>'), findByKey],
    ['a closed connection', hangUp, findByKey],
    ['an error body with status 200, where expect fails on it', always(200, { error: 'x' }), expecting],
  ])('proves nothing by %s', async (_name, handler, recovery) => {
    expect((await find(handler, recovery)).found).toMatchObject({ kind: 'later' });
  });

  it('does not take a job that lacks one of its captures for no job', async () => {
    const recovery = `find:
        request: GET /jobs
        query: { key: "\${{ task.key }}" }
        capture: { id: "response.body.jobs[0].id", url: "response.body.jobs[0].url" }`;
    const both = plainCreate.replace('capture: { id', 'capture: { url: response.body.url, id');
    const { upstream } = await adapted(
      { create: `${both}\n      ${recovery}` },
      { handler: always(200, { jobs: [{ id: 4, url: null }] }) },
    );
    expect(await upstream.find(fresh, 0)).toMatchObject({
      kind: 'later',
      reason: 'the look-up found the job, but lacks url',
    });
  });

  it.each([400, 405, 422])('can never tell when the upstream answers %i', async (status) => {
    expect((await find(always(status, { error: 'no such filter' }))).found).toMatchObject({
      kind: 'ambiguous',
      reason: expect.stringContaining('no such filter'),
    });
  });
});
