import { describe, expect, it } from 'vitest';
import type { JobResult, ResultOutcome } from '../../src/drivers/driver.ts';
import type { Handler } from '../helpers/http-server.ts';
import { adapted, always, hangUp, page, routes, viewWith, withToken } from './adapted.ts';

const fetched = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output" }
      structured: { count: "\${{ response.body.count }}", url: "\${{ response.body.?url }}" }
      text: "\${{ response.body.count }} rows"`;

interface Case {
  tool?: string;
  output?: Handler;
  state?: object | string;
  verdict?: 'succeeded' | 'failed';
  environment?: { [name: string]: string };
  /** The status is read again, as after a failed try. */
  again?: Handler;
}

async function resultOf({
  tool = '',
  output = always(200, {}),
  state,
  verdict = 'succeeded',
  environment = {},
  again,
}: Case) {
  const ended = verdict === 'succeeded' ? 'done' : 'failed';
  const status = always(200, state ?? { state: ended, message: 'all over' });
  const { upstream, poll, server } = await adapted(
    {
      tool,
      ...withToken,
    },
    {
      handler: routes({ 'GET /jobs/7': again ? [again] : status, 'GET /jobs/7/output': output }),
      environment: { TOKEN: 'tok-0123456789', ...environment },
    },
  );
  const outcome = await upstream.result(viewWith(), verdict, again ? undefined : await poll());
  return { outcome, server };
}

function ready(outcome: ResultOutcome): JobResult {
  if (outcome.kind !== 'ready') throw new Error(`not ready: ${outcome.reason}`);
  return outcome.result;
}

describe('a result', () => {
  it('is the status message when the adapter maps nothing', async () => {
    expect(ready((await resultOf({})).outcome)).toEqual({
      isError: false,
      text: 'all over',
      structured: undefined,
      links: [],
    });
    const plain = await resultOf({ state: { state: 'failed' }, verdict: 'failed' });
    expect(ready(plain.outcome)).toMatchObject({ isError: true, text: 'The job failed.' });
  });

  it('keeps every digit, also in ids inside lists', async () => {
    const tool = `    result:
      structured: { ids: "\${{ response.body.ids }}" }`;
    const state = '{"state":"done","ids":[7421900188888888881,[9007199254740993],-0]}';
    const result = ready((await resultOf({ tool, state })).outcome);
    expect(result.structured).toEqual({ ids: [7421900188888888881n, [9007199254740993n], 0n] });
    expect(result.text).toContain('7421900188888888881');
  });

  it('is fetched, mapped, and leaves out what is not there', async () => {
    const { outcome } = await resultOf({ tool: fetched, output: always(200, { count: 3 }) });
    expect(ready(outcome)).toMatchObject({ text: '3 rows', structured: { count: 3n } });
    expect(ready(outcome).structured).not.toHaveProperty('url');
  });

  it('is written as JSON text when the adapter gives no text', async () => {
    const tool = fetched.replace(/\n {6}text: .*/, '');
    const { outcome } = await resultOf({ tool, output: always(200, { count: 3 }) });
    expect(ready(outcome).text).toBe('{"count":3}');
  });

  it('can be read from JSON lines and from plain text', async () => {
    const lines = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output", read: jsonl }
      text: \${{ size(response.body) }} answers
      structured: { ids: "\${{ response.body.map(r, r.id) }}" }`;
    const jsonl = await resultOf({ tool: lines, output: always(200, '{"id":1}\n{"id":2}\n') });
    expect(ready(jsonl.outcome)).toMatchObject({ text: '2 answers', structured: { ids: [1n, 2n] } });
    const text = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output", read: text }
      text: \${{ response.body }}`;
    const log = await resultOf({ tool: text, output: always(200, 'line 1\r\n\u001b[31mline 2\u001b[0m\n') });
    expect(ready(log.outcome).text).toBe('line 1\nline 2\n');
  });

  it('of a 204 is a success without data', async () => {
    const tool = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output" }
      text: the upstream answered \${{ response.status }}`;
    const { outcome } = await resultOf({ tool, output: always(204, '') });
    expect(ready(outcome)).toMatchObject({ isError: false, text: 'the upstream answered 204' });
  });

  it('of a failed job is mapped by failure, and is an error', async () => {
    const tool = `    failure:
      text: "line \${{ response.body.errors[0].line }}: \${{ response.body.errors[0].msg }}"`;
    const state = { state: 'failed', errors: [{ line: 4, msg: 'bad flag' }] };
    const { outcome } = await resultOf({ tool, state, verdict: 'failed' });
    expect(ready(outcome)).toMatchObject({ isError: true, text: 'line 4: bad flag' });
  });

  it('says what of it could not be made, and keeps the rest', async () => {
    const { outcome } = await resultOf({
      tool: `${fetched}\n      links: [{ uri: "\${{ response.body.page }}", name: page }]`,
      output: always(200, { rows: 3 }),
    });
    expect(ready(outcome)).toMatchObject({ isError: false, structured: undefined, links: [] });
    expect(ready(outcome).text).toBe(
      "all over\n(structured, text, link of the result could not be made from the upstream's reply)",
    );
  });

  it('never holds a secret, in text, values, names or links', async () => {
    const tool = `    result:
      structured: { all: "\${{ response.body }}" }
      text: "got \${{ response.body.token }}"
      links: [{ uri: "https://x.test/?t=\${{ response.body.token }}", name: "\${{ response.body.token }}" }]`;
    const state = { state: 'done', token: 'tok-0123456789', 'tok-0123456789': ['x tok-0123456789'] };
    const text = JSON.stringify((await resultOf({ tool, state })).outcome, (_key, value) =>
      typeof value === 'bigint' ? String(value) : value,
    );
    expect(text).not.toContain('tok-0123456789');
    expect(text.split('[redacted]')).toHaveLength(7);
  });

  it('never holds a secret that comes back as a number', async () => {
    const tool = `    result:
      structured: { pin: "\${{ response.body.pin }}", other: "\${{ response.body.other }}" }`;
    const state = '{"state":"done","pin":9988776655,"other":12345}';
    const { outcome } = await resultOf({ tool, state, environment: { TOKEN: '9988776655' } });
    expect(ready(outcome).structured).toEqual({ pin: '[redacted]', other: 12345n });
    expect(ready(outcome).text).not.toContain('9988776655');
  });
});

describe('links', () => {
  const linked = `    result:
      links: [{ uri: "\${{ response.body.log }}", name: "log of \${{ job.id }}", mimeType: text/plain, description: all of it }]`;

  it('keep a long signed URL whole', async () => {
    const signature = 'a'.repeat(1500);
    const { outcome } = await resultOf({
      tool: linked,
      state: { state: 'done', log: `https://blobs.test/log?sig=${signature}` },
    });
    expect(ready(outcome).links).toEqual([
      {
        uri: `https://blobs.test/log?sig=${signature}`,
        name: 'log of 7',
        mimeType: 'text/plain',
        description: 'all of it',
      },
    ]);
  });

  it.each(['/data/out.webp', 'out.webp', 'javascript:alert(1)', 'file:///etc/passwd', ''])(
    'leave out %j, which leads nowhere, and say so',
    async (log) => {
      const { outcome } = await resultOf({
        tool: linked,
        state: { state: 'done', log },
      });
      expect(ready(outcome)).toMatchObject({
        links: [],
        text: expect.stringContaining('(link of the result'),
      });
    },
  );
});

describe('the size of a result', () => {
  const capped = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/output", read: text }
      maxBytes: 1KiB
      text: "[\${{ response.body }}\${{ response.body }}]"`;

  it('is cut with a note, never inside a character', async () => {
    const { outcome } = await resultOf({ tool: capped, output: always(200, 'é'.repeat(400)) });
    const { text, isError } = ready(outcome);
    expect(isError).toBe(false);
    expect(text).toBe(`[${'é'.repeat(511)}\n(cut: 1602 bytes, 1024 are kept)`);
  });

  it('that is too large to fetch keeps the verdict and says so', async () => {
    const { outcome } = await resultOf({ tool: capped, output: always(200, 'x'.repeat(5000)) });
    expect(ready(outcome)).toMatchObject({ isError: false });
    expect(ready(outcome).text).toMatch(/^all over\nIts result could not be read: .*more than 1024 bytes/);
  });

  it('counts for structured content as a whole', async () => {
    const tool = `    result:
      maxBytes: 1KiB
      structured: { a: "\${{ response.body.x }}", b: "\${{ response.body.x }}" }
      text: fine`;
    const state = { state: 'done', x: 'x'.repeat(700) };
    expect(ready((await resultOf({ tool, state })).outcome)).toMatchObject({
      structured: undefined,
      text: "fine\n(structured (too large) of the result could not be made from the upstream's reply)",
    });
  });
});

describe('a failed fetch', () => {
  it.each<[string, Handler, RegExp]>([
    ['410', always(410, { message: 'log expired' }), /HTTP 410: .*log expired/],
    ['404', always(404, { message: 'no output' }), /HTTP 404/],
    ['a page', page, /no such backend/],
    ['403', always(403, ''), /HTTP 403/],
    ['something that is no JSON', always(200, 'PK\u0003'), /is not JSON/],
    [
      'a redirect',
      always(302, '', { location: 'https://blobs.test/x?sig=1' }),
      /to https:\/\/blobs\.test\/x \(/,
    ],
  ])('keeps the verdict and says what is missing: %s', async (_name, output, why) => {
    for (const verdict of ['succeeded', 'failed'] as const) {
      const tool = verdict === 'succeeded' ? fetched : fetched.replace('result:', 'failure:');
      const result = ready((await resultOf({ tool, output, verdict })).outcome);
      expect(result.isError).toBe(verdict === 'failed');
      expect(result.text).toMatch(/^all over\nIts result could not be read: /);
      expect(result.text).toMatch(why);
    }
  });

  it.each<[string, Handler]>([
    ['503', always(503, '', { 'retry-after': '9' })],
    ['429', always(429, '', { 'retry-after': '9' })],
    ['401', always(401, '', { 'retry-after': '9' })],
  ])('is tried again after %s, when the upstream says', async (_name, output) => {
    expect((await resultOf({ tool: fetched, output })).outcome).toMatchObject({
      kind: 'later',
      retryAfterMs: 9000,
      fallback: { isError: false, text: expect.stringContaining('all over\nIts result could not be read') },
    });
  });

  it('is tried again after a closed connection', async () => {
    expect((await resultOf({ tool: fetched, output: hangUp })).outcome).toMatchObject({ kind: 'later' });
  });
});

describe('a status that is read again for the result', () => {
  const output = always(200, { count: 3 });
  const fromStatus = fetched.replace('job.id', 'response.body.out');

  it('is used when it still tells of the end', async () => {
    const again = always(200, { state: 'done', message: 'all over', out: 7 });
    expect(ready((await resultOf({ tool: fromStatus, output, again })).outcome).text).toBe('3 rows');
  });

  it.each<[string, Handler]>([
    ['503', always(503, '{"error":"x"}', { 'retry-after': '4' })],
    ['401', always(401, '')],
    ['a closed connection', hangUp],
  ])('is waited for while it is %s', async (_name, again) => {
    expect((await resultOf({ tool: fromStatus, output, again })).outcome).toMatchObject({ kind: 'later' });
  });

  it('of a job that runs again under the same id lends it neither words nor data', async () => {
    const again = always(200, { state: 'running', message: '1/9 of the next run', out: 7 });
    const byId = ready((await resultOf({ tool: fetched, output, again })).outcome);
    expect(byId).toMatchObject({ text: '3 rows', isError: false });
    const byStatus = ready((await resultOf({ tool: fromStatus, output, again })).outcome);
    expect(byStatus.isError).toBe(false);
    expect(byStatus.text).toMatch(/^The job succeeded\.\nIts result could not be read: /);
    expect(byStatus.text).not.toContain('next run');
  });

  it('of a job that was removed leaves what can still be fetched', async () => {
    const again = always(404, { error: 'no such job' });
    expect(ready((await resultOf({ tool: fetched, output, again })).outcome).text).toBe('3 rows');
  });
});

it('later requests of a result may read what earlier ones captured', async () => {
  const { upstream, poll, server } = await adapted(
    {
      tool: `    result:
      fetch:
        - request: GET /jobs/\${{ job.id }}/output
          capture: { file: response.body.file }
        - request: GET /files/\${{ job.file }}
      text: "\${{ job.file }}: \${{ response.body.size }} bytes"`,
    },
    {
      handler: routes({
        'GET /jobs/7': always(200, { state: 'done' }),
        'GET /jobs/7/output': always(200, { file: 'f-1' }),
        'GET /files/f-1': always(200, { size: 12 }),
      }),
    },
  );
  expect(ready(await upstream.result(viewWith(), 'succeeded', await poll())).text).toBe('f-1: 12 bytes');
  expect(server.seen.at(-1)?.url).toBe('/files/f-1');
});

it('an excerpt of a page never ends in half a secret', async () => {
  const secret = 'tok-0123456789';
  const result = ready(
    (await resultOf({ output: always(200, `${'x'.repeat(192)}${secret} and more`), tool: fetched })).outcome,
  );
  expect(result.text).toMatch(/x\[redac/);
  expect(result.text).not.toContain('tok-');
});

describe('a plain call', () => {
  async function call(handler: Handler, result = '') {
    const { upstream } = await adapted(
      {
        create: '    call: { request: GET /builders }',
        status: '',
        tool: result,
      },
      { handler },
    );
    return upstream.call(viewWith({ job: {} }));
  }

  it('may take several requests, which read what those before captured', async () => {
    const { upstream } = await adapted(
      {
        create: `    call:
      - request: GET /builders
        capture: { first: "response.body[0].id" }
      - request: GET /builders/\${{ job.first }}`,
        status: '',
        tool: `    result: { text: "\${{ job.first }} is \${{ response.body.name }}" }`,
      },
      {
        handler: routes({
          'GET /builders': always(200, [{ id: 3 }]),
          'GET /builders/3': always(200, { name: 'linux' }),
        }),
      },
    );
    expect((await upstream.call(viewWith({ job: {} }))).text).toBe('3 is linux');
  });

  it('answers with the reply, exact numbers included', async () => {
    expect(await call(always(200, '{"id":7421900188888888881}'))).toMatchObject({
      isError: false,
      text: '{\n  "id": 7421900188888888881\n}',
    });
    expect(await call(always(204, ''))).toMatchObject({ isError: false, text: 'Done.' });
  });

  it('maps the reply as a result', async () => {
    const result = `    result:
      structured: { names: "\${{ response.body.map(b, b.name) }}" }`;
    for (const list of [[], ['a'], ['a', 'b']]) {
      const reply = list.map((name) => ({ name }));
      expect((await call(always(200, reply), result)).structured).toEqual({ names: list });
    }
  });

  it.each<[string, Handler, RegExp]>([
    ['500', always(500, { error: 'boom' }), /HTTP 500: .*boom/],
    ['404 with a page', page, /no such backend/],
    ['a closed connection', hangUp, /closed the connection/],
  ])('that fails with %s is an error in words', async (_name, handler, words) => {
    expect(await call(handler)).toMatchObject({ isError: true, text: expect.stringMatching(words) });
  });
});
