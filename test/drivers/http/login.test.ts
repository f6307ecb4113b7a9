// A login that is made before other requests: what it sends, how long it holds, and what happens when it fails.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, test } from 'vitest';
import { createFakeClock } from '../../helpers/fake-clock.ts';
import { type Handler, json, type TestServer } from '../../helpers/http-server.ts';
import { failed, replied, serve } from './fixture.ts';
import { connectWritten, faultsOf } from './written.ts';

const secrets = { CLIENT_ID: 'example-client', CLIENT_SECRET: 'example-secret-value' };

const clientCredentials = `login:
  request: POST /oauth/token
  auth: { basic: { username: "\${{ secrets.CLIENT_ID }}", password: "\${{ secrets.CLIENT_SECRET }}" } }
  form: { grant_type: client_credentials, scope: jobs }
  capture: { token: response.body.access_token }
  expires: response.body.?expires_in
auth: { bearer: "\${{ login.token }}" }`;

/** Gives out `token-1`, `token-2` …; takes the newest one only. */
function tokenServer({ expires = 3600, login }: { expires?: unknown; login?: Handler } = {}): Handler {
  let serial = 0;
  return (request, response, raw) => {
    if (request.url.startsWith('/oauth/token')) {
      if (login !== undefined) return login(request, response, raw);
      serial++;
      return json(response, 200, { access_token: `token-${serial}`, expires_in: expires });
    }
    json(response, request.headers.authorization === `Bearer token-${serial}` ? 200 : 401, { ok: true });
  };
}

function logins({ seen }: TestServer): number {
  return seen.filter(({ url }) => url.startsWith('/oauth/token')).length;
}

const basicHeader = `Basic ${Buffer.from('example-client:example-secret-value').toString('base64')}`;

describe('OAuth2 client credentials', () => {
  test('fetch a token once and send it with every request', async () => {
    const server = await serve(tokenServer());
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    for (const _time of [1, 2]) expect(replied(await connection.perform()).response.status).toBe(200n);
    expect(server.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /oauth/token',
      'GET /jobs',
      'GET /jobs',
    ]);
    expect(server.seen[0]).toMatchObject({
      headers: { authorization: basicHeader, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials&scope=jobs',
    });
    expect(server.seen[1]?.headers.authorization).toBe('Bearer token-1');
  });

  test('may be sent in the body, to another host that the file names', async () => {
    const server = await serve();
    const issuer = await serve((_request, response) => json(response, 200, { access_token: 'token-1' }));
    const connection = connectWritten(server.origin, {
      upstream: `login:
  request: POST \${{ env.ISSUER }}/tenants/a%20b/token?v=2
  form: { client_id: "\${{ secrets.CLIENT_ID }}", client_secret: "\${{ secrets.CLIENT_SECRET }}" }
  capture: { token: response.body.access_token }
headers: { X-Tenant: "\${{ secrets.CLIENT_ID }}", Authorization: "Token \${{ login.token }}" }`,
      secrets,
      env: { ISSUER: issuer.origin },
    });
    replied(await connection.perform());
    expect(issuer.seen).toHaveLength(1);
    expect(issuer.seen[0]).toMatchObject({
      url: '/tenants/a%20b/token?v=2',
      body: 'client_id=example-client&client_secret=example-secret-value',
    });
    expect(issuer.seen[0]?.headers['x-tenant']).toBeUndefined();
    expect(server.seen[0]?.headers).toMatchObject({
      authorization: 'Token token-1',
      'x-tenant': 'example-client',
    });
  });

  test('are asked for once however many requests wait', async () => {
    const server = await serve(tokenServer());
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    const replies = await Promise.all(Array.from({ length: 8 }, () => connection.perform()));
    expect(replies.map((reply) => replied(reply).response.status)).toEqual(Array(8).fill(200n));
    expect(logins(server)).toBe(1);
  });

  test('are asked for again shortly before the token ends', async () => {
    const server = await serve(tokenServer({ expires: 600 }));
    const clock = createFakeClock();
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets }, { clock });
    await connection.perform();
    await clock.advance(530_000);
    await connection.perform();
    expect(logins(server)).toBe(1);
    await clock.advance(15_000);
    expect(replied(await connection.perform()).response.status).toBe(200n);
    expect(logins(server)).toBe(2);
  });

  test.each([
    ['seconds in a text', 'response.body.at', '30', 27_500],
    ['a time', 'timestamp(response.body.at)', 1_800_000_030, 27_500],
    ['a fixed duration', '30s', 0, 27_500],
    ['nothing, which means 50 minutes', 'response.body.?none', 0, 49 * 60_000 + 500],
  ])('hold as long as %s says', async (_what, expires, at, renewed) => {
    const server = await serve((request, response) =>
      json(response, 200, request.url === '/oauth/token' ? { access_token: 't', at } : {}),
    );
    const clock = createFakeClock(1_800_000_000_000);
    const upstream = clientCredentials.replace('response.body.?expires_in', expires);
    const connection = connectWritten(server.origin, { upstream, secrets }, { clock });
    await connection.perform();
    await clock.advance(renewed - 1000);
    await connection.perform();
    expect(logins(server)).toBe(1);
    await clock.advance(1000);
    await connection.perform();
    expect(logins(server)).toBe(2);
  });

  test('that are changed are used at once', async () => {
    const server = await serve(tokenServer());
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    await connection.perform();
    connection.values.secrets.CLIENT_SECRET = 'another-secret-value';
    await connection.perform();
    expect(logins(server)).toBe(2);
    expect(server.seen.at(-2)?.headers.authorization).not.toBe(basicHeader);
  });
});

describe('a login that the upstream no longer accepts', () => {
  test('is made anew after a 401, and the request is sent once more', async () => {
    let valid = 'token-1';
    let serial = 0;
    const server = await serve((request, response) => {
      if (request.url === '/oauth/token') {
        valid = `token-${++serial}`;
        return json(response, 200, { access_token: valid });
      }
      json(response, request.headers.authorization === `Bearer ${valid}` ? 200 : 401, {});
    });
    const connection = connectWritten(server.origin, {
      upstream: clientCredentials,
      secrets,
      steps: ['{ request: POST /jobs, json: { a: 1 } }'],
    });
    await connection.perform();
    valid = 'none of them';
    const [first, second] = await Promise.all([connection.perform(), connection.perform()]);
    expect([first, second].map((reply) => reply && replied(reply).response.status)).toEqual([200n, 200n]);
    expect(logins(server)).toBe(2);
    expect(server.seen.at(-1)?.body).toBe('{"a":1}');
  });

  test('is not made over and over when a new one is refused as well', async () => {
    const server = await serve((request, response) =>
      request.url === '/oauth/token'
        ? json(response, 200, { access_token: 'useless' })
        : json(response, 401, {}),
    );
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    for (const _time of [1, 2, 3]) expect(replied(await connection.perform()).response.status).toBe(401n);
    expect(logins(server)).toBe(2);
    expect(server.seen.filter(({ url }) => url === '/jobs')).toHaveLength(4);
  });

  test('is known by renewOn where another reply says so', async () => {
    let alive = true;
    const server = await serve((request, response) => {
      if (request.url === '/oauth/token') {
        alive = true;
        return json(response, 200, { access_token: 't' });
      }
      if (alive) return json(response, 200, {});
      response.writeHead(302, { location: '/login?next=/jobs' }).end();
    });
    const upstream = `${clientCredentials}
renewOn: response.status == 302 && response.headers.location.startsWith("/login")`;
    const connection = connectWritten(server.origin, { upstream, secrets });
    await connection.perform();
    alive = false;
    expect(replied(await connection.perform()).response.status).toBe(200n);
    expect(logins(server)).toBe(2);
  });

  test('is kept when a 403 is a rate limit', async () => {
    const server = await serve((request, response) =>
      request.url === '/oauth/token'
        ? json(response, 200, { access_token: 't' })
        : json(response, 403, { message: 'API rate limit exceeded' }, { 'retry-after': '1' }),
    );
    const upstream = `${clientCredentials}\nrenewOn: response.status == 403`;
    const connection = connectWritten(server.origin, { upstream, secrets });
    expect(replied(await connection.perform()).limited).toBe(true);
    expect(logins(server)).toBe(1);
  });
});

describe('a login that fails', () => {
  test('is a credential failure of a request that was never sent, without the secret', async () => {
    const server = await serve(
      tokenServer({
        login: (request, response) =>
          json(response, 400, {
            error: 'invalid_client',
            got: request.headers.authorization,
            secret: 'example-secret-value',
          }),
      }),
    );
    const redact = (text: string): string =>
      text.replaceAll('example-secret-value', '[redacted]').replaceAll(basicHeader.slice(6), '[redacted]');
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets }, { redact });
    const result = failed(await connection.perform());
    expect(result).toMatchObject({ code: 'credential', sent: false });
    expect(result.reason).toBe(
      'the login failed: login: HTTP 400: {"error":"invalid_client","got":"Basic [redacted]","secret":"[redacted]"}',
    );
    expect(server.seen.map(({ url }) => url)).toEqual(['/oauth/token']);
  });

  test('is not tried again at once, and then less and less often', async () => {
    const server = await serve(tokenServer({ login: (_request, response) => json(response, 503, {}) }));
    const clock = createFakeClock();
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets }, { clock });
    for (const pause of [1000, 2000, 4000]) {
      expect(failed(await connection.perform()).reason).toContain('login: HTTP 503');
      const before = logins(server);
      await clock.advance(pause - 1);
      expect(failed(await connection.perform()).code).toBe('credential');
      expect(logins(server)).toBe(before);
      await clock.advance(1);
    }
    await connection.perform();
    expect(logins(server)).toBe(4);
  });

  test('is tried again at once when the credential has changed', async () => {
    const server = await serve(
      tokenServer({
        login: (request, response) =>
          request.headers.authorization === basicHeader
            ? json(response, 401, {})
            : json(response, 200, { access_token: 'token-0' }),
      }),
    );
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    failed(await connection.perform());
    connection.values.secrets.CLIENT_SECRET = 'mended-secret-value';
    expect(replied(await connection.perform()).response.status).toBe(200n);
  });

  test('leaves a session in use that has not ended yet', async () => {
    let broken = false;
    const server = await serve((request, response) =>
      request.url === '/oauth/token'
        ? json(response, broken ? 500 : 200, { access_token: 't', expires_in: 100 })
        : json(response, 200, {}),
    );
    const clock = createFakeClock();
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets }, { clock });
    await connection.perform();
    broken = true;
    await clock.advance(95_000);
    expect(replied(await connection.perform()).response.status).toBe(200n);
    await clock.advance(6000);
    expect(failed(await connection.perform()).code).toBe('credential');
  });

  test.each([
    ['a value is missing', { token: 'a-token-of-another-name' }, 'HTTP 200 gives no value for token'],
    [
      'the body is no JSON',
      'access_token=a-token-of-another-name',
      'HTTP 200: its body is not what read: json wants',
    ],
  ])('quotes nothing of a reply that may hold a token: %s', async (_what, body, reason) => {
    const server = await serve((_request, response) => json(response, 200, body));
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    expect(failed(await connection.perform()).reason).toBe(`the login failed: login: ${reason}`);
  });

  test('says when nobody listens at its host', async () => {
    const server = await serve();
    const connection = connectWritten(server.origin, {
      upstream: clientCredentials.replace('POST /oauth/token', 'POST http://127.0.0.1:1/token'),
      secrets,
    });
    expect(failed(await connection.perform())).toMatchObject({
      code: 'credential',
      sent: false,
      reason: 'the login failed: login: 127.0.0.1:1 refuses connections',
    });
    expect(server.seen).toEqual([]);
  });

  test('does not take those along who gave up waiting for it', async () => {
    let answer: (() => void) | undefined;
    const server = await serve(
      tokenServer({
        login: (_request, response) => {
          answer = () => json(response, 200, { access_token: 'token-0' });
        },
      }),
    );
    const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
    const leaving = new AbortController();
    const left = connection.perform(0, {}, { signal: leaving.signal });
    const stayed = connection.perform();
    await server.waitFor(1);
    leaving.abort();
    expect(failed(await left)).toMatchObject({ code: 'aborted', sent: false });
    answer?.();
    expect(replied(await stayed).response.status).toBe(200n);
    expect(logins(server)).toBe(1);
  });
});

describe('several steps', () => {
  const session = `login:
  - request: GET /login
    read: text
    capture:
      csrf: response.body.split('name="csrf" value="')[1].split('"')[0]
      start: response.cookies
  - request: POST /login
    headers:
      Cookie: "\${{ login.start.map(name, name + '=' + login.start[name]).join('; ') }}"
    form: { user: "\${{ secrets.CLIENT_ID }}", password: "\${{ secrets.CLIENT_SECRET }}", csrf: "\${{ login.csrf }}" }
    read: none
    expect: response.status == 302
    capture: { session: response.cookies.sid }
headers: { Cookie: "sid=\${{ login.session }}" }
renewOn: response.status == 403`;

  test('make a form login with cookies', async () => {
    let serial = 0;
    const server = await serve((request, response) => {
      if (request.method === 'GET' && request.url === '/login') {
        response
          .writeHead(200, {
            'set-cookie': [
              'pre=a,b; Path=/',
              'old=; Max-Age=0',
              'lang=en; Expires=Wed, 21-Oct-2099 07:28:00 GMT',
            ],
          })
          .end('<input name="csrf" value="c-123">');
      } else if (request.url === '/login') {
        serial++;
        response.writeHead(302, { location: '/', 'set-cookie': [`sid=session-${serial}; HttpOnly`] }).end();
      } else json(response, request.headers.cookie === `sid=session-${serial}` ? 200 : 403, {});
    });
    const connection = connectWritten(server.origin, { upstream: session, secrets });
    expect(replied(await connection.perform()).response.status).toBe(200n);
    expect(server.seen[1]).toMatchObject({
      headers: { cookie: 'pre=a,b; lang=en' },
      body: 'user=example-client&password=example-secret-value&csrf=c-123',
    });
    serial = 7;
    expect(replied(await connection.perform()).response.status).toBe(200n);
    expect(connection.secrets()).toEqual(expect.arrayContaining(['c-123', 'session-1', 'session-8']));
  });

  test('send a crumb in a header whose name the reply gives, beside the credentials of the upstream', async () => {
    const server = await serve((request, response) =>
      request.url === '/crumbIssuer/api/json'
        ? json(
            response,
            200,
            { crumb: 'c0ffee', crumbRequestField: 'Jenkins-Crumb' },
            { 'set-cookie': 'JSESSIONID.1f=node0; Path=/' },
          )
        : json(response, 200, {}),
    );
    const connection = connectWritten(server.origin, {
      upstream: `auth: { basic: { username: ci, password: "\${{ secrets.CLIENT_SECRET }}" } }
login:
  request: GET /crumbIssuer/api/json
  capture:
    crumb: "{response.body.crumbRequestField: response.body.crumb}"
    cookies: response.cookies
headers: >-
  \${{ merge(login.crumb, {"Cookie": login.cookies.map(name, name + "=" + login.cookies[name]).join("; ")}) }}`,
      secrets,
      steps: ['{ request: POST /job/build, json: {} }'],
    });
    replied(await connection.perform());
    const [crumb, build] = server.seen;
    expect(crumb?.headers.authorization).toMatch(/^Basic /);
    expect(crumb?.headers['jenkins-crumb']).toBeUndefined();
    expect(build?.headers).toMatchObject({
      authorization: crumb?.headers.authorization,
      'jenkins-crumb': 'c0ffee',
      cookie: 'JSESSIONID.1f=node0',
    });
  });

  test('count against the budget, which they do not block', async () => {
    const server = await serve(tokenServer());
    let held = 0;
    let most = 0;
    let acquired = 0;
    const budget = {
      async acquire() {
        acquired++;
        most = Math.max(most, ++held);
        return () => void held--;
      },
      pauseUntil() {},
    };
    const connection = connectWritten(
      server.origin,
      { upstream: clientCredentials, secrets },
      { budget: budget as never },
    );
    await connection.perform();
    expect({ acquired, most }).toEqual({ acquired: 2, most: 1 });
  });
});

test('a URL out of a reply gets nothing of the login at another host', async () => {
  const server = await serve(tokenServer());
  const files = await serve();
  const connection = connectWritten(server.origin, {
    upstream: `${clientCredentials}\nallowHosts: ["127.0.0.1:${files.port}"]`,
    secrets,
    steps: [
      '{ request: "GET ${{ args.url }}", headers: { X-Token: "${{ login.token }}", X-Plain: a } }',
      '{ request: "POST ${{ args.url }}", json: { token: "${{ login.token }}" } }',
    ],
  });
  const scope = { args: { url: `${files.origin}/a` } };
  replied(await connection.perform(0, scope));
  expect(files.seen[0]?.headers).toMatchObject({ 'x-plain': 'a' });
  expect(JSON.stringify(files.seen[0]?.headers)).not.toContain('token-1');
  expect(failed(await connection.perform(1, scope))).toMatchObject({ code: 'invalid_request', sent: false });
  expect(files.seen).toHaveLength(1);
});

test('a request that sends nothing of the login needs none', async () => {
  const server = await serve(tokenServer());
  const connection = connectWritten(server.origin, {
    upstream: clientCredentials,
    secrets,
    steps: ['{ request: GET /public, auth: none }'],
  });
  replied(await connection.perform());
  expect(server.seen.map(({ url }) => url)).toEqual(['/public']);
});

describe('what is written wrong', () => {
  const faults = (upstream: string, step = '{ request: GET /jobs }'): string[] =>
    faultsOf({ upstream, steps: [step], secrets });
  const login = (rest: string): string =>
    `login: { request: POST /token, capture: { token: response.body.t }${rest} }`;

  test.each([
    ['auth: { bearer: "${{ login.token }}" }', 'upstream.auth.bearer: login has no "token"'],
    [
      `${login('')}\nauth: { bearer: "\${{ login.tokn }}" }`,
      'upstream.auth.bearer: login has no "tokn", did you mean "token"?',
    ],
    ['login: { request: POST /token }', 'upstream.login: captures nothing that requests could send'],
    ['renewOn: response.status == 403', 'upstream.renewOn: needs login, which is what it makes anew'],
    [`${login('')}\nrenewOn: response.status`, 'upstream.renewOn: gives int, but true or false is wanted'],
    [login(', expires: 2d'), 'upstream.login.expires: must be between 1s and 1d'],
    [login(', when: "true"'), 'upstream.login.when: unknown key "when"'],
    [
      'login: { request: "POST /x/${{ secrets.CLIENT_ID }}", capture: { a: response.body.a } }',
      'upstream.login.request: "secrets" can\'t be read here',
    ],
    [
      'login: { request: "POST https://u:p@x.example.com/", capture: { a: response.body.a } }',
      'upstream.login.request: the target holds a user name or password',
    ],
    [
      'login: { request: POST /token, headers: { X: "${{ login.a }}" }, capture: { a: response.body.a } }',
      'upstream.login.headers.X: login has no "a"',
    ],
    [
      'login: [{ request: GET /a, capture: { a: response.body.a } }, { request: GET /b, capture: { a: response.body.a } }]',
      'upstream.login[1].capture.a: "a" is captured twice',
    ],
  ])('%s', (upstream, fault) => {
    expect(faults(upstream)).toEqual([fault]);
  });

  test.each([
    ['{ request: "GET /jobs/${{ login.token }}" }', 'tools.run.call[0].request: "login" can\'t be read here'],
    [
      '{ request: GET /jobs, expect: login.token == "" }',
      'tools.run.call[0].expect: "login" can\'t be read here',
    ],
    [
      '{ request: GET /jobs, capture: { t: login.token } }',
      'tools.run.call[0].capture.t: "login" can\'t be read here',
    ],
    ['{ request: "GET https://other.example.com/" }', 'tools.run.call[0].request: the target names a host'],
    [
      '{ request: GET /jobs, auth: some }',
      'tools.run.call[0].auth: must be none, or a map as in upstream.auth',
    ],
  ])('%s in a step', (step, fault) => {
    const found = faults(`${login('')}\nauth: { bearer: "\${{ login.token }}" }`, step);
    expect(found).toHaveLength(1);
    expect(found[0]).toContain(fault);
  });
});

test('a closed connection ends a login under way', async () => {
  const server = await serve(tokenServer({ login: () => {} }));
  const connection = connectWritten(server.origin, { upstream: clientCredentials, secrets });
  const pending = connection.perform();
  await server.waitFor(1);
  await connection.close();
  expect(failed(await pending)).toMatchObject({ sent: false });
});
