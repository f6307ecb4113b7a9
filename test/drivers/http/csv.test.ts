// CSV and binary bodies as values.

import { describe, expect, test } from 'vitest';
import { NotCsv, parseCsv } from '../../../src/drivers/http/csv.ts';
import { text } from '../../helpers/templates.ts';
import { connect, replied, serve, step } from './fixture.ts';

describe('a CSV file', () => {
  test.each<[string, unknown]>([
    [
      'id,name\r\n1,a\r\n2,b\r\n',
      [
        { id: '1', name: 'a' },
        { id: '2', name: 'b' },
      ],
    ],
    ['id,name\n1,"x, ""y""\nz"', [{ id: '1', name: 'x, "y"\nz' }]],
    ['\ufeffid\n1\n', [{ id: '1' }]],
    ['id,name\n\n1,\n\n', [{ id: '1', name: '' }]],
    ['id, name \n1, a ', [{ id: '1', name: ' a ' }]],
    ['a,a,,a_2\n1,2,3,4', [{ a: '1', a_2: '2', column_3: '3', a_2_2: '4' }]],
    ['id,name\n', []],
    ['', []],
  ])('%j is a list of maps by its first line', (csv, expected) => {
    expect(parseCsv(csv)).toEqual(expected);
  });

  test('may have a column whose name means something to JavaScript', () => {
    const [row] = parseCsv('__proto__,constructor\n1,2\n');
    expect(Object.entries(row ?? {})).toEqual([
      ['__proto__', '1'],
      ['constructor', '2'],
    ]);
  });

  test.each([
    ['a,b\n1,2,3\n', 'is not CSV (Invalid Record Length: expect 2, got 3 on line 2)'],
    ['a,b\n1,"2\n', 'is not CSV (Quote Not Closed'],
    [`a\n${'1\n'.repeat(100_001)}`, 'has more than 100000 rows'],
    [`${'a,'.repeat(1001)}\n`, 'has more than 1000 columns'],
  ])('%j is told to be none', (csv, why) => {
    expect(() => parseCsv(csv)).toThrow(NotCsv);
    expect(() => parseCsv(csv)).toThrow(why);
  });

  test('is asked for as such, whatever type the reply has', async () => {
    const server = await serve((_request, response) => void response.writeHead(200).end('n\n1\n'));
    const what = step(text`/rows`, { read: 'csv' });
    const { response } = replied(await connect({ baseUrl: server.origin }).perform(what, {}));
    expect(response.body).toEqual([{ n: '1' }]);
    expect(server.seen[0]?.headers.accept).toBe('text/csv, */*;q=0.5');
  });

  test('that is none makes the reply unreadable, with its start', async () => {
    const server = await serve((_request, response) => void response.writeHead(200).end('a\n1,2\n'));
    const what = step(text`/rows`, { read: 'csv' });
    const { response, unreadable } = replied(await connect({ baseUrl: server.origin }).perform(what, {}));
    expect(response.body).toBeNull();
    expect(unreadable).toMatch(/^the reply \(200, no content type\) is not CSV \(.*\): a 1,2$/);
  });
});

test('a binary body is read as base64', async () => {
  const bytes = Buffer.from([0x1f, 0x8b, 0x00, 0xff]);
  const server = await serve((_request, response) => void response.writeHead(200).end(bytes));
  const connection = connect({ baseUrl: server.origin });
  const { response } = replied(await connection.perform(step(text`/x`, { read: 'base64' }), {}));
  expect(response).toMatchObject({ body: 'H4sA/w==', bytes: 4n });
  server.handle((_request, response) => void response.writeHead(200).end());
  expect(replied(await connection.perform(step(text`/x`, { read: 'base64' }), {})).response.body).toBe('');
});

describe('an error in place of what was asked for', () => {
  test.each(['csv', 'base64', 'jsonl'] as const)(
    'is read as JSON or as plain words (read: %s)',
    async (read) => {
      const bodies = ['{"error":"only one credential is allowed"}', 'only one credential is allowed'];
      for (const body of bodies) {
        const server = await serve((_request, response) => void response.writeHead(400).end(body));
        const reply = replied(
          await connect({ baseUrl: server.origin }).perform(step(text`/file`, { read }), {}),
        );
        expect(reply.response.body).toEqual(body.startsWith('{') ? JSON.parse(body) : body);
        expect(reply).not.toHaveProperty('unreadable');
      }
    },
  );
});
