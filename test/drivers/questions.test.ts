import { describe, expect, it } from 'vitest';
import { type Handler, json } from '../helpers/http-server.ts';
import { adapted, always, hangUp, routes, statusOf, viewWith, withToken } from './adapted.ts';

const ask = `    ask:
      - key: approve
        fetch:
          request: GET /jobs/\${{ job.id }}/gates
          capture:
            gates: response.body.filter(g, g.mine).map(g, g.id)
            names: response.body.map(g, g.name).join(", ")
        when: job.gates.size() > 0
        message: Approve \${{ job.names }}?
        schema:
          type: object
          required: [count]
          properties: { count: { type: integer }, share: { type: number }, note: { type: string } }
        onAccept:
          request: POST /jobs/\${{ job.id }}/gates
          json: { gates: "\${{ job.gates }}", count: "\${{ answer.count }}", share: "\${{ answer.?share }}" }
        onDecline:
          request: POST /jobs/\${{ job.id }}/refuse
          json: { gates: "\${{ job.gates }}" }`;

const waiting: Handler = always(200, { state: 'waiting', message: 'at the gate' });

async function asking(gates: Handler, more: { [route: string]: Handler } = {}) {
  const parts = await adapted(
    { tool: ask },
    { handler: routes({ 'GET /jobs/7': waiting, 'GET /jobs/7/gates': gates, ...more }) },
  );
  return { ...parts, seen: await parts.poll() };
}

const prod = { id: 7421900188888888881n, name: 'prod', mine: true };
const gates = (...list: { id: bigint; name: string; mine: boolean }[]): Handler =>
  always(200, `[${list.map((g) => `{"id":${g.id},"name":"${g.name}","mine":${g.mine}}`).join(',')}]`);

describe('a question', () => {
  it('is read with its own captures when the job waits', async () => {
    const { seen } = await asking(gates(prod));
    expect(statusOf(seen)).toMatchObject({
      phase: 'input_required',
      message: 'at the gate',
      job: { gates: [7421900188888888881n], names: 'prod' },
      questions: [
        { stem: 'approve', message: 'Approve prod?', schema: { required: ['count'] }, fingerprint: /./ },
      ].map(({ fingerprint: _, ...question }) => question),
    });
  });

  it('has another fingerprint when its captures are others, and the same when they are not', async () => {
    const print = async (handler: Handler) =>
      statusOf((await asking(handler)).seen).questions[0]?.fingerprint;
    expect(await print(gates(prod))).toBe(await print(gates(prod)));
    expect(await print(gates(prod))).not.toBe(await print(gates({ ...prod, id: 8n })));
  });

  it('is not put when its condition does not hold', async () => {
    const { seen } = await asking(gates({ ...prod, mine: false }));
    expect(statusOf(seen)).toMatchObject({ phase: 'input_required', questions: [] });
  });

  it('is not read while the job does not wait', async () => {
    const { poll, server } = await adapted({ tool: ask }, { handler: always(200, { state: 'running' }) });
    expect(statusOf(await poll()).questions).toEqual([]);
    expect(server.seen).toHaveLength(1);
  });

  it.each<[string, Handler, string]>([
    ['404', always(404, { error: 'no gates' }), 'rejected'],
    ['410', always(410, { error: 'no gates' }), 'rejected'],
    ['400', always(400, { error: 'no gates' }), 'rejected'],
    ['503', always(503, ''), 'unreachable'],
    ['401', always(401, ''), 'credential'],
    ['a closed connection', hangUp, 'unreachable'],
  ])('that can’t be read because of %s says nothing about the job', async (_name, handler, kind) => {
    expect((await asking(handler)).seen.observation).toMatchObject({ kind });
  });

  it('is one clean line without secrets', async () => {
    const { poll } = await adapted(
      { tool: ask, ...withToken },
      {
        handler: routes({
          'GET /jobs/7': waiting,
          'GET /jobs/7/gates': always(200, [{ id: 1, mine: true, name: 'a\nb \u202esecret-token-1' }]),
        }),
        environment: { TOKEN: 'secret-token-1' },
      },
    );
    expect(statusOf(await poll()).questions[0]?.message).toBe('Approve a b [redacted]?');
  });
});

describe('an answer', () => {
  async function deliver(
    handler: Handler,
    action: 'accept' | 'decline' | 'cancel' = 'accept',
    content: { [name: string]: bigint | number } = { count: 5n, share: 0.5 },
  ) {
    const { upstream, server, seen } = await asking(gates(prod), {
      'POST /jobs/7/gates': handler,
      'POST /jobs/7/refuse': handler,
    });
    const view = viewWith({ job: { id: 7n, ...statusOf(seen).job } });
    const answer = { stem: 'approve', ask: 'approve', item: undefined, action, content };
    const outcome = await upstream.answer(view, answer, seen);
    return { outcome, sent: server.seen.slice(2) };
  }

  it('is sent with exact numbers: a whole one without a fraction, a large one with all digits', async () => {
    const { outcome, sent } = await deliver(always(204, ''));
    expect(outcome).toEqual({ kind: 'delivered' });
    expect(sent[0]?.body).toBe('{"gates":[7421900188888888881],"count":5,"share":0.5}');
    expect((await deliver(always(204, ''), 'accept', { count: 5n })).sent[0]?.body).toBe(
      '{"gates":[7421900188888888881],"count":5}',
    );
  });

  it('that declines is sent by its own step', async () => {
    const { outcome, sent } = await deliver(always(204, ''), 'decline', {});
    expect(outcome).toEqual({ kind: 'delivered' });
    expect(sent[0]?.url).toBe('/jobs/7/refuse');
  });

  it('is not sent when the adapter names no step for it', async () => {
    const { outcome, sent } = await deliver(always(204, ''), 'cancel', {});
    expect(outcome).toEqual({ kind: 'unhandled' });
    expect(sent).toEqual([]);
  });

  it.each([400, 404, 409, 422])('is refused by %i, with the reason', async (status) => {
    expect((await deliver(always(status, { message: 'too late' }))).outcome).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('too late'),
    });
  });

  it.each<[string, Handler]>([
    ['503', (_request, response) => json(response, 503, '')],
    ['429', always(429, '')],
    ['401', always(401, '')],
    ['a closed connection', hangUp],
  ])('is tried again after %s', async (_name, handler) => {
    expect((await deliver(handler)).outcome).toMatchObject({ kind: 'later' });
  });
});
