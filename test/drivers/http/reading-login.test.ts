// Redirects, pages and remembered replies of an upstream with a login: whose credentials go where, and what is sent again.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, test } from 'vitest';
import { type Handler, json, type SeenRequest } from '../../helpers/http-server.ts';
import { failed, replied, serve } from './fixture.ts';
import { connectWritten, faultsOf } from './written.ts';

const secrets = { USER: 'example-user', PASSWORD: 'example-password' };

const upstream = (more = ''): string => `login:
  request: POST /login
  form: { user: "\${{ secrets.USER }}", password: "\${{ secrets.PASSWORD }}" }
  capture: { session: response.body.session }
headers: { X-Session: "\${{ login.session }}" }
${more}`;

/** Gives out session-1, session-2 …; the newest is welcome, others are sent to the sign-in page. */
function sessions(welcome: Handler): Handler {
  let serial = 0;
  return (request, response, raw) => {
    if (request.url === '/login') json(response, 200, { session: `session-${++serial}` });
    else if (request.url === '/sign-in') response.writeHead(200).end('<html><title>Sign in</title></html>');
    else if (serial < 2) response.writeHead(302, { location: '/sign-in' }).end();
    else welcome(request, response, raw);
  };
}

const paths = (seen: readonly SeenRequest[]): string[] => seen.map(({ method, url }) => `${method} ${url}`);

describe('with a login', () => {
  test('a redirect that means a login is over is not followed: a login is made anew', async () => {
    const server = await serve(sessions((_request, response) => json(response, 200, { ok: true })));
    const connection = connectWritten(server.origin, {
      upstream: upstream("renewOn: response.status == 302 && response.headers.location == '/sign-in'"),
      secrets,
      steps: ['{ request: GET /jobs, redirects: 3 }'],
    });
    expect(replied(await connection.perform()).response.body).toEqual({ ok: true });
    expect(paths(server.seen)).toEqual(['POST /login', 'GET /jobs', 'POST /login', 'GET /jobs']);
  });

  test('what it captured goes to no other host behind a redirect, but to one that gets credentials', async () => {
    const storage = await serve();
    const server = await serve((request, response) =>
      request.url === '/login'
        ? json(response, 200, { session: 'session-1' })
        : void response.writeHead(302, { location: `${storage.origin}/log` }).end(),
    );
    const host = `127.0.0.1:${storage.port}`;
    const steps = [
      '{ request: GET /log, redirects: 1, headers: { Authorization: "Bearer ${{ secrets.USER }}" } }',
    ];
    for (const entry of [host, `{ host: "${host}", credentials: true }`]) {
      const options = { upstream: upstream(`allowHosts: [${entry}]`), secrets, steps };
      replied(await connectWritten(server.origin, options).perform());
    }
    expect(storage.seen.map(({ headers }) => [headers['x-session'], headers.authorization])).toEqual([
      [undefined, undefined],
      ['session-1', 'Bearer example-user'],
    ]);
  });

  test('a request that changes something is not sent again for a page behind it that refuses the login', async () => {
    const server = await serve((request, response) => {
      if (request.url === '/login') json(response, 200, { session: 's' });
      else if (request.method === 'POST') response.writeHead(303, { location: '/jobs/7' }).end();
      else json(response, 401, {});
    });
    const options = { upstream: upstream(), secrets, steps: ['{ request: POST /jobs, redirects: 1 }'] };
    expect(failed(await connectWritten(server.origin, options).perform()).sent).toBe(true);
    expect(paths(server.seen)).toEqual(['POST /login', 'POST /jobs', 'GET /jobs/7']);
  });

  test('a page that refuses it is asked for again with a new one', async () => {
    let serial = 0;
    const server = await serve((request, response) => {
      if (request.url === '/login') json(response, 200, { session: `session-${++serial}` });
      else if (request.url === '/jobs') json(response, 200, { items: [1], next: '?page=2' });
      else if (request.headers['x-session'] === 'session-1') json(response, 401, {});
      else json(response, 200, { items: [2] });
    });
    const steps = [
      '{ request: GET /jobs, pages: { items: response.body.items, next: response.body.?next } }',
    ];
    const connection = connectWritten(server.origin, { upstream: upstream(), secrets, steps });
    expect(replied(await connection.perform()).response.body).toEqual([1n, 2n]);
  });

  test('a login is no list, and its reply is never remembered', () => {
    const login = upstream().replace(
      '  capture:',
      '  etag: true\n  pages: { items: response.body, next: response.body.next }\n  capture:',
    );
    const told = 'a login is one reply, and never remembered';
    expect(faultsOf({ upstream: login, secrets })).toEqual(
      expect.arrayContaining([`upstream.login.pages: ${told}`, `upstream.login.etag: ${told}`]),
    );
  });
});
