// Lists that come in pages, through adapters that name each style.

import { describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { loadAdapter } from '../../../src/config/load.ts';
import { type Budget, createBudget } from '../../../src/drivers/budget.ts';
import type { StepReply } from '../../../src/drivers/driver.ts';
import type { HttpStep } from '../../../src/drivers/http/compiled.ts';
import { httpFormat } from '../../../src/drivers/http/format.ts';
import { formatProblem } from '../../../src/errors.ts';
import { type Handler, json } from '../../helpers/http-server.ts';
import { fixed } from '../../helpers/templates.ts';
import { connect, credentials, failed, replied, serve } from './fixture.ts';

/** A step of a file; `pages` are the fields of its `pages`. */
function paged(pages: string, request = 'GET /items', more = ''): HttpStep {
  const { adapter, problems } = loadAdapter(
    `version: 1
name: sample
upstream: { driver: http, baseUrl: "https://ci.example.com" }
tools:
  run:
    description: Runs.
    call:
      request: ${request}
      ${more}
      pages: { ${pages} }
`,
    { file: 'sample.yaml', formats: [httpFormat] },
  );
  expect(problems.map(formatProblem)).toEqual([]);
  return adapter?.tools[0]?.create[0]?.request as HttpStep;
}

/** Items 1 to `total`, as many a page as `per_page` says; `render` makes the reply of one page. */
function listing(
  total: number,
  render: (page: { items: { id: number }[]; next: number | undefined; origin: string }) => {
    body: unknown;
    headers?: { [name: string]: string };
  },
): Handler {
  return (request, response) => {
    const url = new URL(request.url, `http://${request.headers.host}`);
    const size = Number(url.searchParams.get('per_page') ?? 2);
    const page = Number(url.searchParams.get('page') ?? url.searchParams.get('token') ?? 1);
    const start = Number(url.searchParams.get('offset') ?? (page - 1) * size);
    const items = Array.from({ length: total }, (_, n) => ({ id: n + 1 })).slice(start, start + size);
    const next = start + size < total ? page + 1 : undefined;
    const { body, headers } = render({ items, next, origin: url.origin });
    json(response, 200, body, headers ?? {});
  };
}

const ids = (reply: StepReply): unknown =>
  (replied(reply).response.body as { id: bigint }[]).map(({ id }) => Number(id));

async function run(
  handler: Handler,
  step: HttpStep,
  { maxBytes, budget }: { maxBytes?: number; budget?: Budget } = {},
) {
  const server = await serve(handler);
  const connection = connect({ baseUrl: server.origin }, { ...credentials(), ...(budget && { budget }) });
  const reply = await connection.perform(step, {}, maxBytes === undefined ? {} : { maxBytes });
  return { reply, server, urls: server.seen.map(({ url }) => url) };
}

const byLink = listing(5, ({ items, next, origin }) => ({
  body: items,
  headers: next === undefined ? {} : { link: `<${origin}/items?page=${next}>; rel="next"` },
}));
const link = 'items: response.body, next: "linkHeader(response.headers.?link, \'next\')"';

describe('pages', () => {
  test('by a Link header are one list', async () => {
    const { reply, urls } = await run(byLink, paged(link));
    expect(ids(reply)).toEqual([1, 2, 3, 4, 5]);
    expect(replied(reply).response).toMatchObject({ status: 200n, truncated: false });
    expect(urls).toEqual(['/items', '/items?page=2', '/items?page=3']);
  });

  test('by a URL in the body, also a relative one', async () => {
    const handler = listing(5, ({ items, next }) => ({
      body: { items, links: next === undefined ? {} : { next: `?page=${next}` } },
    }));
    const { reply } = await run(
      handler,
      paged('items: response.body.items, next: response.body.links.?next'),
    );
    expect(ids(reply)).toEqual([1, 2, 3, 4, 5]);
  });

  test.each(['null', '""'])('end at a next page that is %s', async (none) => {
    const handler: Handler = (_request, response) =>
      json(response, 200, `{"items":[{"id":1}],"next":${none}}`);
    const { reply, urls } = await run(handler, paged('items: response.body.items, next: response.body.next'));
    expect(ids(reply)).toEqual([1]);
    expect(urls).toHaveLength(1);
  });

  test('by a token keep the parameters of the step', async () => {
    const handler = listing(5, ({ items, next }) => ({
      body: { items, ...(next && { token: String(next) }) },
    }));
    const { reply, urls } = await run(
      handler,
      paged(
        `items: response.body.items, query: { token: "\${{ response.body.?token }}" }`,
        'GET /items?per_page=2',
        'query: { state: open }',
      ),
    );
    expect(ids(reply)).toEqual([1, 2, 3, 4, 5]);
    expect(urls).toEqual([
      '/items?per_page=2&state=open',
      '/items?per_page=2&state=open&token=2',
      '/items?per_page=2&state=open&token=3',
    ]);
  });

  test('by a token in a header', async () => {
    const handler = listing(3, ({ items, next }) => ({
      body: items,
      headers: next === undefined ? {} : { 'x-continuation': String(next) },
    }));
    const step = paged(
      `items: response.body, query: { token: '\${{ response.headers[?"x-continuation"] }}' }`,
    );
    expect(ids((await run(handler, step)).reply)).toEqual([1, 2, 3]);
  });

  test('that are empty but have a token go on', async () => {
    const handler: Handler = (request, response) =>
      json(response, 200, request.url === '/items' ? { items: [], token: 'a' } : { items: [{ id: 1 }] });
    const step = paged(`items: response.body.items, query: { token: "\${{ response.body.?token }}" }`);
    expect(ids((await run(handler, step)).reply)).toEqual([1]);
  });

  test('by number end at the first empty one', async () => {
    const step = paged(`items: response.body, query: { page: "\${{ page.number }}" }`);
    const { reply, urls } = await run(
      listing(4, ({ items }) => ({ body: items })),
      step,
    );
    expect(ids(reply)).toEqual([1, 2, 3, 4]);
    expect(urls).toEqual(['/items', '/items?page=2', '/items?page=3']);
  });

  test('by offset, as long as the adapter says that there is more', async () => {
    const step = paged(
      `items: response.body.items, query: { offset: "\${{ page.offset }}" }, while: page.offset < response.body.total`,
      'GET /items',
      'query: { per_page: 3 }',
    );
    const { reply, urls } = await run(
      listing(6, ({ items }) => ({ body: { items, total: 6 } })),
      step,
    );
    expect(ids(reply)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(urls).toEqual(['/items?per_page=3', '/items?per_page=3&offset=3']);
  });
});

describe('more pages than may be read', () => {
  const endless = listing(1000, ({ items, next }) => ({ body: { items, next: `?page=${next}` } }));
  const next = 'items: response.body.items, next: response.body.next';

  test('end at max, and the reply says that there is more', async () => {
    const { reply, urls } = await run(endless, paged(`${next}, max: 3`));
    expect(ids(reply)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(replied(reply).response.truncated).toBe(true);
    expect(urls).toHaveLength(3);
  });

  test('end at ten where the adapter says nothing', async () => {
    expect((await run(endless, paged(next))).urls).toHaveLength(10);
  });

  test('end before the page that is too large for what is left', async () => {
    const { reply } = await run(endless, paged(next), { maxBytes: 120 });
    expect(ids(reply)).toEqual([1, 2, 3, 4]);
    expect(replied(reply).response).toMatchObject({ truncated: true });
    expect(replied(reply).response).not.toHaveProperty('bytes');
  });

  test('where already the first is too large are too large', async () => {
    expect(failed((await run(endless, paged(next), { maxBytes: 20 })).reply).code).toBe('too_large');
  });

  test('each take a place in the budget', async () => {
    const budget = createBudget({ concurrency: 1, rate: { calls: 3, perMs: 60_000 } }, systemClock);
    await run(endless, paged(`${next}, max: 3`), { budget });
    expect(budget.free()).toBe(0);
  });
});

describe('a page', () => {
  test('that was read before is a failure: the upstream sends us round', async () => {
    const handler: Handler = (_request, response) => json(response, 200, { items: [], next: '/items' });
    const { reply, urls } = await run(handler, paged('items: response.body.items, next: response.body.next'));
    expect(failed(reply)).toMatchObject({ code: 'invalid_request', sent: true });
    expect(failed(reply).reason).toBe('the next page is one that was read before');
    expect(urls).toHaveLength(1);
  });

  test('whose token is the one before is a failure', async () => {
    const handler: Handler = (_request, response) => json(response, 200, { items: [], token: 'same' });
    const step = paged(`items: response.body.items, query: { token: "\${{ response.body.token }}" }`);
    expect(failed((await run(handler, step)).reply).reason).toBe('the next page is one that was read before');
  });

  test.each([
    [
      'http://evil.test/items',
      'the next page points at http://evil.test:80, which is neither the upstream nor',
    ],
    ['ftp://127.0.0.1/', 'the next page leads to no http or https URL'],
  ])('on %s is not asked for', async (url, why) => {
    const handler: Handler = (_request, response) => json(response, 200, { items: [], next: url });
    const { reply, urls } = await run(handler, paged('items: response.body.items, next: response.body.next'));
    expect(failed(reply)).toMatchObject({ code: 'invalid_request' });
    expect(failed(reply).reason).toContain(why);
    expect(urls).toHaveLength(1);
  });

  test('on another host gets no credential', async () => {
    const other = await serve((_request, response) => json(response, 200, { items: [{ id: 2 }] }));
    const server = await serve((_request, response) =>
      json(response, 200, { items: [{ id: 1 }], next: `${other.origin}/x` }),
    );
    const connection = connect({
      baseUrl: server.origin,
      allowHosts: [`127.0.0.1:${other.port}`],
      auth: { kind: 'bearer', token: fixed('fake-token') },
    });
    const step = paged('items: response.body.items, next: response.body.?next');
    expect(ids(await connection.perform(step, {}))).toEqual([1, 2]);
    expect(server.seen[0]?.headers.authorization).toBe('Bearer fake-token');
    expect(other.seen[0]?.headers.authorization).toBeUndefined();
  });

  test.each([
    [429, true],
    [503, false],
    [404, false],
  ])('that answers with %i is what the step gives', async (status, limited) => {
    const server = await serve((request, response, raw) =>
      request.url.endsWith('page=2')
        ? json(response, status, { message: 'no' }, { 'retry-after': '7' })
        : byLink(request, response, raw),
    );
    const reply = replied(await connect({ baseUrl: server.origin }).perform(paged(link), {}));
    expect(reply.response).toMatchObject({ status: BigInt(status), body: { message: 'no' } });
    expect(reply).toMatchObject({ ok: false, retryAfterMs: 7000 });
    expect(reply.limited === true).toBe(limited);
  });

  test('that breaks off is a failure of the step', async () => {
    const server = await serve((request, response, raw) =>
      request.url.endsWith('page=2') ? void response.destroy() : byLink(request, response, raw),
    );
    expect(failed(await connect({ baseUrl: server.origin }).perform(paged(link), {}))).toMatchObject({
      code: 'reset',
      sent: true,
    });
  });

  test.each([
    ['items: response.body.items, next: response.body.next', {}, 'No such key: items'],
    ['items: response.body.items, next: response.body.next', { items: {} }, 'gives no list'],
    ['items: response.body.items, next: response.body.next', { items: [], next: 7 }, 'gives no text'],
    ['items: response.body.items, next: response.body.next', { items: [] }, 'No such key: next'],
  ])('that is not as %s says is unreadable (%j)', async (pages, body, why) => {
    const { reply } = await run((_request, response) => json(response, 200, body), paged(pages));
    expect(replied(reply).unreadable).toContain(why);
  });
});
