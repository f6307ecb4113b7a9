import { describe, expect, it } from 'vitest';
import type { Handler } from '../helpers/http-server.ts';
import {
  adapted,
  always,
  hangUp,
  page,
  plainStatus,
  routes,
  silence,
  statusOf,
  viewWith,
  withToken,
} from './adapted.ts';

/** One poll of a job whose status endpoint is `handler`. */
async function pollOf(handler: Handler, status = plainStatus) {
  const { poll } = await adapted({ status }, { handler });
  return poll();
}

/** A status read from `GET /jobs/7` by `state`, which is YAML at column 8. */
function stateOf(state: string, more = ''): string {
  return `    status:
      request: GET /jobs/\${{ job.id }}
${more}
      state:
${state}`;
}

describe('a bad poll', () => {
  it.each<[string, Handler]>([
    ['408', always(408, '')],
    ['425', always(425, '')],
    ['429', always(429, '')],
    ['500', always(500, '')],
    ['502 with a page', always(502, '<html></html>', { 'content-type': 'text/html' })],
    ['503', always(503, { message: 'maintenance' })],
    ['a closed connection', hangUp],
    ['silence', silence],
    ['a page with status 200', always(200, '<html>please log in</html>', { 'content-type': 'text/html' })],
    ['JSON that ends too early', always(200, '{"state":"do')],
    ['a 404 page of a balancer', page],
    ['a 410 page of a balancer', always(410, '<html></html>', { 'content-type': 'text/html' })],
    ['a 403 with Retry-After', always(403, { message: 'slow down' }, { 'retry-after': '60' })],
    ['a 403 with nothing remaining', always(403, {}, { 'x-ratelimit-remaining': '0' })],
    ['a 403 that speaks of a rate limit', always(403, { message: 'API rate limit exceeded' })],
  ])('says nothing about the job: %s', async (_name, handler) => {
    const { upstream } = await adapted({ upstream: '  timeouts: { headers: 200ms }' }, { handler });
    expect((await upstream.poll(viewWith())).observation).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringMatching(/\S/),
    });
  });

  it.each<[number, string]>([
    [401, 'credential'],
    [403, 'credential'],
    [404, 'missing'],
    [410, 'gone'],
    [302, 'rejected'],
    [400, 'rejected'],
    [405, 'rejected'],
    [422, 'rejected'],
  ])('of status %i is %s', async (status, kind) => {
    const { observation } = await pollOf(always(status, { message: 'because' }));
    expect(observation).toMatchObject({ kind, reason: expect.stringContaining(`HTTP ${status}`) });
  });

  it('hands on when the upstream asked to come back', async () => {
    const { observation } = await pollOf(always(503, '', { 'retry-after': '40' }));
    expect(observation).toMatchObject({ kind: 'unreachable', retryAfterMs: 40_000 });
  });

  it('reaches the state rules when the adapter expects its status', async () => {
    const status = stateOf('        working: response.status == 202\n        failed: response.status >= 400')
      .replace('      state:', '      expect: response.status < 500\n      state:')
      .replace('        failed', '        succeeded: response.status == 200\n        failed');
    expect(statusOf(await pollOf(always(404, { error: 'gone' }), status)).phase).toBe('failed');
    expect((await pollOf(always(503, { error: 'x' }), status)).observation.kind).toBe('unreachable');
  });

  it('names a credential that is not there, and reads the job once it is', async () => {
    const environment: { [name: string]: string } = {};
    const { server, poll } = await adapted(withToken, {
      handler: always(200, { state: 'running' }),
      environment,
    });
    expect((await poll()).observation).toMatchObject({
      kind: 'credential',
      reason: expect.stringContaining('TOKEN'),
    });
    expect(server.seen).toHaveLength(0);
    environment.TOKEN = 'a-new-token';
    expect(statusOf(await poll()).phase).toBe('working');
    expect(server.seen[0]?.headers.authorization).toBe('Bearer a-new-token');
  });
});

describe('the state', () => {
  it.each([
    ['running', 'working'],
    ['waiting', 'input_required'],
    ['done', 'succeeded'],
    ['failed', 'failed'],
    ['stopped', 'cancelled'],
    ['broken', 'errored'],
  ])('"%s" is %s', async (state, phase) => {
    expect(statusOf(await pollOf(always(200, { state })))).toMatchObject({ phase, job: {} });
  });

  it.each(['requested', 'pending', 'queued', 'hibernating', 'Done', 'done ', ''])(
    '"%s", which no rule knows, reads as working, is named and counted',
    async (state) => {
      const { poll, metrics } = await adapted({}, { handler: always(200, { state }) });
      const status = statusOf(await poll());
      expect(status).toMatchObject({ phase: 'working', unknownWord: JSON.stringify(state).trim() });
      expect(await metrics()).toContain('taskferry_unknown_status_total{adapter="jobs"} 1');
    },
  );

  it.each<[string, string]>([
    ['absent', '{}'],
    ['null', '{"state":null}'],
    ['below a null', '{"job":null}'],
    ['an empty body', ''],
    ['a list', '[]'],
  ])('that is %s is no status', async (_name, body) => {
    const state = `        of: response.body.state
        working: [running]
        succeeded: [done]`;
    expect((await pollOf(always(200, body), stateOf(state))).observation.kind).toBe('unreadable');
  });

  it.each<[string, string]>([
    ['200 with a running body', '{"status":"running"}'],
    ['done with neither result nor error', '{"done":true}'],
  ])('is not ended by %s, and Retry-After is kept', async (_name, body) => {
    const state = `        working: response.body.?done.orValue(false) == false
        succeeded: response.body.done && has(response.body.response)
        failed: response.body.done && has(response.body.error)`;
    const status = statusOf(await pollOf(always(200, body, { 'retry-after': '30' }), stateOf(state)));
    expect(status).toMatchObject({ phase: 'working', retryAfterMs: 30_000 });
  });

  it('takes 204 for a success only by a rule', async () => {
    const byRule = stateOf(
      '        working: response.status == 202\n        succeeded: response.status == 204',
    );
    expect(statusOf(await pollOf(always(204, ''), byRule)).phase).toBe('succeeded');
    expect(statusOf(await pollOf(always(202, ''), byRule)).phase).toBe('working');
    expect((await pollOf(always(204, ''))).observation.kind).toBe('unreadable');
  });

  it('is not decided by a rule that throws, which is counted', async () => {
    const state = `        failed: response.body.errors.size() > 0
        succeeded: response.body.finished`;
    const { poll, metrics } = await adapted(
      { status: stateOf(state) },
      { handler: always(200, { finished: true }) },
    );
    expect(statusOf(await poll()).phase).toBe('succeeded');
    expect(await metrics()).toContain('taskferry_expression_faults_total{adapter="jobs"} 1');
  });

  it('is decided by a condition where the status word throws', async () => {
    const state = `        of: response.body.job.state
        working: [running]
        succeeded: response.body.finished`;
    expect(statusOf(await pollOf(always(200, { finished: true }), stateOf(state))).phase).toBe('succeeded');
  });

  it('takes the phases in their fixed order, whatever their order in the file', async () => {
    const names = ['working', 'input_required', 'succeeded', 'failed', 'errored', 'cancelled'];
    const state = names.map((name) => `        ${name}: '"${name}" in response.body.holds'`).join('\n');
    for (let count = names.length; count > 0; count--) {
      const holds = names.slice(0, count);
      const { phase } = statusOf(await pollOf(always(200, { holds }), stateOf(state)));
      expect(phase).toBe(holds.at(-1));
    }
  });

  it('takes the first rule that holds in the list form', async () => {
    const state = `        - { phase: working, when: "response.status == 202" }
        - { phase: succeeded, when: response.body.?result.hasValue() }
        - { phase: failed, when: true }`;
    expect(statusOf(await pollOf(always(202, { result: 1 }), stateOf(state))).phase).toBe('working');
    expect(statusOf(await pollOf(always(200, { result: 1 }), stateOf(state))).phase).toBe('succeeded');
    expect(statusOf(await pollOf(always(200, {}), stateOf(state))).phase).toBe('failed');
  });

  it('compares words exactly: text is no number and true is no text', async () => {
    const state = `        of: response.body.code
        working: [1, "2"]
        succeeded: [2, true]
        failed: ["true", "1"]`;
    for (const [code, phase] of [
      ['1', 'working'],
      ['"2"', 'working'],
      ['2', 'succeeded'],
      ['2.0', 'succeeded'],
      ['true', 'succeeded'],
      ['"true"', 'failed'],
      ['"1"', 'failed'],
    ] as const) {
      expect([code, statusOf(await pollOf(always(200, `{"code":${code}}`), stateOf(state))).phase]).toEqual([
        code,
        phase,
      ]);
    }
  });
});

describe('the message', () => {
  const esc = String.fromCharCode(0x1b);
  const messageOf = async (message: unknown) =>
    statusOf(await pollOf(always(200, { state: 'running', message }))).message;

  it.each<[string, string, string | undefined]>([
    ['terminal colours', `${esc}[31mred${esc}[0m alert`, 'red alert'],
    ['a window title', `${esc}]0;owned\u0007 ok`, 'ok'],
    ['bidirectional overrides', 'safe\u202egnp.exe\u202c', 'safegnp.exe'],
    ['isolates', '\u2066a\u2069b', 'ab'],
    ['zero-width characters', 'to\u200bke\u200dn\ufeff', 'token'],
    ['tag characters', `hi${String.fromCodePoint(0xe0069, 0xe0067)}`, 'hi'],
    ['hidden variation selectors', `hi${String.fromCodePoint(0xe0101, 0xe01ef)}`, 'hi'],
    ['line ends', 'one\r\ntwo\nthree\u2028four', 'one two threefour'],
    ['a null character', 'a\u0000b', 'ab'],
    ['half of a surrogate pair', 'a\ud83d', 'a\ufffd'],
    ['only blanks', ' \n\t ', undefined],
    ['other scripts and emoji', 'zespół 構建 🚀', 'zespół 構建 🚀'],
  ])('loses %s', async (_name, raw, clean) => {
    expect(await messageOf(raw)).toBe(clean);
  });

  it('has at most 500 code points, none cut in half', async () => {
    const long = (await messageOf('🚀'.repeat(10_000))) ?? '';
    expect([...long]).toHaveLength(500);
    expect(long.endsWith('🚀…')).toBe(true);
    expect([...((await messageOf('x'.repeat(500))) ?? '')].at(-1)).toBe('x');
  });

  it.each<[string, unknown]>([
    ['absent', undefined],
    ['null', null],
    ['a list', ['a']],
    ['a map', { a: 1 }],
  ])('is left out when its value is %s, and the state counts all the same', async (_name, message) => {
    const status = statusOf(await pollOf(always(200, { state: 'running', message })));
    expect(status).not.toHaveProperty('message');
    expect(status.phase).toBe('working');
  });

  it.each<[string, unknown]>([
    ['a total of nothing', { done: 0, total: 0 }],
    ['text for a number', { done: '37', total: 40 }],
    ['a fraction for a whole number', { done: 1.5, total: 40 }],
  ])('that counts with %s is left out, and the state counts all the same', async (_name, numbers) => {
    const status = plainStatus.replace(
      /message: .*/,
      `message: "\${{ response.body.done * 100 / response.body.total }}%"`,
    );
    const reply = always(200, { state: 'running', ...(numbers as object) });
    const read = statusOf(await pollOf(reply, status));
    expect(read).not.toHaveProperty('message');
    expect(read.phase).toBe('working');
    const good = always(200, { state: 'running', done: 3, total: 4 });
    expect(statusOf(await pollOf(good, status)).message).toBe('75%');
  });

  it('writes large whole numbers with all their digits', async () => {
    const status = statusOf(await pollOf(always(200, '{"state":"running","message":7421900188888888881}')));
    expect(status.message).toBe('7421900188888888881');
  });

  const secret = 'tok-0123456789abcdefghij';
  it.each<[string, unknown, string]>([
    ['as it is', `used ${secret}`, 'used [redacted]'],
    ['with hidden characters in it', `used tok\u200b-0123456789abcdefghij`, 'used [redacted]'],
    ['URL-encoded', `?t=${encodeURIComponent(secret)}`, '?t=[redacted]'],
    ['in base64', Buffer.from(secret).toString('base64'), '[redacted]'],
  ])('never shows a secret that the upstream echoes %s', async (_name, message, expected) => {
    const { poll } = await adapted(withToken, {
      handler: always(200, { state: 'running', message }),
      environment: { TOKEN: secret },
    });
    expect(statusOf(await poll()).message).toBe(expected);
  });

  it('never shows a secret of several lines that the upstream echoes', async () => {
    const key = '-----BEGIN KEY-----\nMIIexampleLineOne\nLineTwo==\n-----END KEY-----';
    const parts = { top: 'secrets: [KEY]', upstream: `  query: { key: "\${{ secrets.KEY }}" }` };
    for (const message of [`bad key: ${key}`, `bad key: ${key.replaceAll('\n', ' \n')}`]) {
      const handler = always(200, { state: 'running', message });
      const { poll } = await adapted(parts, { handler, environment: { KEY: key } });
      expect(statusOf(await poll()).message).toBe('bad key: [redacted]');
    }
  });

  it('never shows the value that a secret had before it was rotated', async () => {
    const environment = { TOKEN: 'first-token-1' };
    const handler = always(200, { state: 'running', message: 'first-token-1, then other-token-2' });
    const { poll } = await adapted(withToken, { handler, environment });
    await poll();
    environment.TOKEN = 'other-token-2';
    expect(statusOf(await poll()).message).toBe('[redacted], then [redacted]');
  });

  it('never shows half of a secret where a long message is cut', async () => {
    for (let padding = 476; padding <= 500; padding += 3) {
      const { poll } = await adapted(withToken, {
        handler: always(200, { state: 'running', message: `${'x'.repeat(padding)}${secret}` }),
        environment: { TOKEN: secret },
      });
      expect(statusOf(await poll()).message).not.toContain('tok-');
    }
  });

  it('never shows a secret in an unknown status word or the reason of a bad poll', async () => {
    for (const handler of [
      always(200, { state: secret }),
      always(400, { at: secret }),
      always(503, secret),
    ]) {
      const { poll } = await adapted(withToken, { handler, environment: { TOKEN: secret } });
      const shown = JSON.stringify(statusLike(await poll()));
      expect(shown).toContain('[redacted]');
      expect(shown).not.toContain(secret);
    }
  });
});

function statusLike(poll: { observation: object }): object {
  const { job: _, ...rest } = poll.observation as { job?: unknown };
  return rest;
}

describe('stages', () => {
  const staged = `    status:
      - stage: queue
        request: GET /queue/\${{ job.id }}
        capture:
          build: response.body.?executable.?number
        state: { cancelled: response.body.?cancelled.orValue(false), working: true }
        message: \${{ response.body.why }}
      - stage: build
        request: GET /builds/\${{ job.build }}
        capture:
          node: response.body.?node
        state: { of: response.body.state, working: [running], succeeded: [done] }
        message: on \${{ job.node }}`;

  const queue = (body: unknown): Handler => always(200, body);

  it('stays in a stage while its captures have no value, null or absent', async () => {
    for (const body of [
      { why: 'busy' },
      { why: 'busy', executable: null },
      { why: 'busy', executable: {} },
    ]) {
      const { poll, server } = await adapted(
        { status: staged },
        { handler: routes({ 'GET /queue/7': queue(body) }) },
      );
      expect(statusOf(await poll())).toMatchObject({
        phase: 'working',
        statusStage: 0,
        message: 'busy',
        job: {},
      });
      expect(server.seen).toHaveLength(1);
    }
  });

  it('reads the next stage in the same poll once they have, and starts there from then on', async () => {
    const { poll, server } = await adapted(
      { status: staged },
      {
        handler: routes({
          'GET /queue/7': queue('{"executable":{"number":9007199254740993}}'),
          'GET /builds/9007199254740993': always(200, { state: 'running', node: 'n1' }),
        }),
      },
    );
    const status = statusOf(await poll());
    expect(status).toMatchObject({
      phase: 'working',
      statusStage: 1,
      job: { build: 9007199254740993n, node: 'n1' },
      message: 'on n1',
    });
    await poll({ job: { id: 7n, ...status.job }, statusStage: 1 });
    expect(server.seen.map(({ url }) => url).slice(2)).toEqual(['/builds/9007199254740993']);
  });

  it('keeps nothing of a poll whose second stage failed', async () => {
    const { poll } = await adapted(
      { status: staged },
      {
        handler: routes({
          'GET /queue/7': queue({ executable: { number: 41 } }),
          'GET /builds/41': always(502, ''),
        }),
      },
    );
    expect((await poll()).observation).toMatchObject({ kind: 'unreachable' });
  });

  it('ends in the first stage when its state says so', async () => {
    const { poll } = await adapted(
      { status: staged },
      { handler: routes({ 'GET /queue/7': queue({ cancelled: true, why: 'by hand' }) }) },
    );
    expect(statusOf(await poll())).toMatchObject({ phase: 'cancelled', message: 'by hand' });
  });

  it('keeps a captured value that a later reply no longer has', async () => {
    const { poll } = await adapted(
      { status: staged },
      { handler: routes({ 'GET /builds/41': always(200, { state: 'running' }) }) },
    );
    const status = statusOf(await poll({ job: { id: 7n, build: 41n, node: 'n1' }, statusStage: 1 }));
    expect(status).toMatchObject({ job: {}, message: 'on n1' });
  });
});
