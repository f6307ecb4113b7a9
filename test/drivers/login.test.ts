// A login as tasks see it: what a create and a poll say when it fails, and what nobody gets to read.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, test } from 'vitest';
import { json } from '../helpers/http-server.ts';
import { adapted, always, routes, statusOf, viewWith } from './adapted.ts';

const withLogin = {
  top: 'secrets: [CLIENT_SECRET]',
  upstream: `  login:
    request: POST /token
    form: { client_secret: "\${{ secrets.CLIENT_SECRET }}" }
    capture: { token: response.body.token }
  auth: { bearer: "\${{ login.token }}" }`,
};
const environment = { CLIENT_SECRET: 'example-client-secret' };

describe('a login that fails', () => {
  const handler = routes({
    'POST /token': always(401, { error: 'bad client example-client-secret' }),
  });
  const said = 'the login failed: login: HTTP 401: {"error":"bad client [redacted]"}';

  test('refuses a create before anything was sent, and does not blame the request', async () => {
    const { upstream, server } = await adapted(withLogin, { handler, environment: { ...environment } });
    expect(await upstream.createStep(viewWith({ job: {} }), 0)).toEqual({
      kind: 'refused',
      message: said,
      judged: false,
    });
    expect(server.seen.map(({ url }) => url)).toEqual(['/token']);
  });

  test('makes a poll wait for a working credential', async () => {
    const { poll } = await adapted(withLogin, { handler, environment: { ...environment } });
    expect((await poll()).observation).toEqual({ kind: 'credential', reason: said });
  });
});

test('what a login gave is kept out of messages, results and logs', async () => {
  const token = 'generated-token-value';
  const { upstream, upstreams, poll } = await adapted(withLogin, {
    environment: { ...environment },
    handler: routes({
      'POST /token': always(200, { token }),
      'GET /jobs/7': (request, response) =>
        json(response, 200, { state: 'running', message: `you sent ${request.headers.authorization}` }),
      'POST /jobs': (request, response) =>
        json(response, 422, { error: `refused for ${request.headers.authorization}` }),
    }),
  });
  expect(statusOf(await poll()).message).toBe('you sent Bearer [redacted]');
  expect(await upstream.createStep(viewWith({ job: {} }), 0)).toMatchObject({
    message: 'HTTP 422: {"error":"refused for Bearer [redacted]"}',
  });
  expect(upstreams.redact(`a line with ${token}`)).toBe('a line with [redacted]');
});
