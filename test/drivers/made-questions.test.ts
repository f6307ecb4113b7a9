// Questions that are made from what the upstream says: forms of its own fields, and one for each item of a list.

import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/exact-json.ts';
import { type Handler, json } from '../helpers/http-server.ts';
import { adapted, always, routes, statusOf, viewWith, withToken } from './adapted.ts';

const form = `    ask:
      - key: fill
        message: Fill in the form
        schema:
          type: object
          required: "\${{ response.body.fields.map(f, f.name) }}"
          properties: >-
            \${{ fromEntries(response.body.fields.map(f, {"key": f.name, "value": f.shape})) }}
        onAccept:
          request: POST /jobs/\${{ job.id }}/input
          json: { parameters: "\${{ answer }}" }`;

const perGate = `    ask:
      - key: approve
        each: response.body.gates
        id: item.name
        message: Deploy to \${{ item.name }}?
        schema: { type: object, required: [yes], properties: { yes: { type: boolean } } }
        onAccept:
          - when: answer.yes
            request: POST /gates/\${{ item.id }}/approve
          - when: "!answer.yes"
            request: POST /gates/\${{ item.id }}/reject
        onDecline: { request: "POST /gates/\${{ item.id }}/reject" }`;

const waiting = (more: object): Handler => always(200, { state: 'waiting', message: 'waits', ...more });
const field = (name: string, shape: object) => ({ name, shape });

async function asking(fields: object[]) {
  const parts = await adapted({ tool: form }, { handler: routes({ 'GET /jobs/7': waiting({ fields }) }) });
  return parts.poll();
}

describe('a form of the upstream’s own fields', () => {
  it('has the fields, choices and limits that the upstream names', async () => {
    const seen = await asking([
      field('env', { type: 'string', enum: ['prod', 'test'] }),
      field('count', { type: 'integer', maximum: 9 }),
    ]);
    expect(statusOf(seen).questions[0]?.schema).toEqual({
      type: 'object',
      required: ['env', 'count'],
      properties: {
        env: { type: 'string', enum: ['prod', 'test'] },
        count: { type: 'integer', maximum: 9 },
      },
    });
  });

  it('is another question when the fields change', async () => {
    const print = async (name: string) =>
      statusOf(await asking([field(name, { type: 'string' })])).questions[0]?.fingerprint;
    expect(await print('a')).toBe(await print('a'));
    expect(await print('a')).not.toBe(await print('b'));
  });

  it.each([
    ['is nested', [field('a', { type: 'object' })], 'schema.properties.a.type'],
    ['is no schema', [field('a', { type: 'string', enum: [1] })], 'schema.properties.a.enum'],
    ['names no field', [{ name: 'a' }], 'its schema gives no map'],
    ['is huge', [field('a', { type: 'string', title: 'x'.repeat(40_000) })], 'larger than'],
  ])('that %s is told as a fault, and nothing is asked', async (_name, fields, reason) => {
    expect((await asking(fields)).observation).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining(reason),
    });
  });

  it('shows no secret and no hidden characters', async () => {
    const { poll } = await adapted(
      { tool: form, ...withToken },
      {
        handler: waiting({ fields: [field('a', { type: 'string', title: 'x\u202e fake-token-123' })] }),
        environment: { TOKEN: 'fake-token-123' },
      },
    );
    const properties = statusOf(await poll()).questions[0]?.schema.properties as JsonObject;
    expect(properties).toEqual({ a: { type: 'string', title: 'x [redacted]' } });
  });

  it('is answered with those fields', async () => {
    const { upstream, poll, server } = await adapted(
      { tool: form },
      {
        handler: routes({
          'GET /jobs/7': waiting({ fields: [field('env', { type: 'string' })] }),
          'POST /jobs/7/input': always(204, ''),
        }),
      },
    );
    const seen = await poll();
    const answer = {
      stem: 'fill',
      ask: 'fill',
      item: undefined,
      action: 'accept' as const,
      content: { env: 'prod' },
    };
    expect(await upstream.answer(viewWith(), answer, seen)).toEqual({ kind: 'delivered' });
    expect(server.seen.at(-1)?.body).toBe('{"parameters":{"env":"prod"}}');
  });
});

describe('one question for each item', () => {
  async function gates(list: object[]) {
    const parts = await adapted(
      { tool: perGate },
      {
        handler: (request, response) =>
          json(response, 200, request.method === 'GET' ? { state: 'waiting', message: '', gates: list } : {}),
      },
    );
    return { ...parts, seen: await parts.poll() };
  }

  it('has a key of its own, which stays the same whatever the order', async () => {
    const [a, b] = [
      { id: 1, name: 'prod' },
      { id: 2, name: 'a b/c' },
    ];
    const stems = async (list: object[]) =>
      statusOf((await gates(list)).seen).questions.map(({ stem }) => stem);
    const [first = '', second = ''] = await stems([a, b]);
    expect(first).toBe('approve_prod');
    expect(second).toMatch(/^approve_[A-Za-z0-9_-]{16}$/);
    expect(await stems([b, a])).toEqual([second, first]);
    expect(await stems([a, a])).toEqual([first]);
  });

  it('is answered for its own item, by the step whose condition holds', async () => {
    const { upstream, seen, server } = await gates([
      { id: 1, name: 'prod' },
      { id: 2, name: 'test' },
    ]);
    const [, question] = statusOf(seen).questions;
    if (question === undefined) throw new Error('no second question');
    for (const [yes, path] of [
      [true, '/gates/2/approve'],
      [false, '/gates/2/reject'],
    ] as const) {
      const answer = { ...question, action: 'accept' as const, content: { yes } };
      expect(await upstream.answer(viewWith(), answer, seen)).toEqual({ kind: 'delivered' });
      expect(server.seen.at(-1)?.url).toBe(path);
    }
  });

  it('is put for the first twenty only', async () => {
    const { seen } = await gates(Array.from({ length: 30 }, (_, i) => ({ id: i, name: `g${i}` })));
    expect(statusOf(seen).questions).toHaveLength(20);
  });
});
