// Mutual TLS: which hosts see the client certificate, where it comes from, and what is said when it does not work.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { type ChildProcess, spawn } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Handler, json, type TestServer } from '../../helpers/http-server.ts';
import { type Authority, createAuthority, type Pair } from './certificates.ts';
import { failed, replied, serve } from './fixture.ts';
import { serveProxy } from './proxy-server.ts';
import { connectWritten, faultsOf } from './written.ts';

let authority: Authority;
let server: Pair;
let named: Pair;
let first: Pair;
let second: Pair;
const passphrase = 'example-passphrase';

beforeAll(() => {
  authority = createAuthority();
  server = authority.issue('server', 'IP:127.0.0.1');
  named = authority.issue('named', 'DNS:jobs.internal.test');
  first = authority.issue('first', 'DNS:first.client.test');
  second = authority.issue('second', 'DNS:second.client.test');
});

afterAll(() => authority.remove());

/** Answers with the name in the client's certificate; 403 without one. */
const whoAsks: Handler = (_request, response, raw) => {
  const socket = raw.socket as TLSSocket;
  const name = socket.authorized ? socket.getPeerCertificate().subject.CN : undefined;
  json(response, name === undefined ? 403 : 200, { name: name ?? null });
};

/** Asks every client for a certificate. */
function serveAsking(pair: Pair = server): Promise<TestServer> {
  return serve(whoAsks, { ...pair, ca: authority.ca, requestCert: true, rejectUnauthorized: false });
}

const files = `ca: ca.pem
tls: { cert: first.pem, key: first.key }`;

/** The adapter stands beside the certificates. */
function beside(): string {
  return join(authority.folder, 'sample.yaml');
}

describe('a client certificate', () => {
  test('is shown to the upstream, from files beside the adapter', async () => {
    const upstream = await serveAsking();
    const connection = connectWritten(upstream.origin, { upstream: files, file: beside() });
    for (const _time of [1, 2])
      expect(replied(await connection.perform()).response.body).toEqual({ name: 'first' });
    expect(upstream.seen.map(({ connection: number }) => number)).toEqual([1, 1]);
  });

  test('may come from secrets, encrypted and in one line', async () => {
    const upstream = await serveAsking();
    const KEY = createPrivateKey(first.key)
      .export({ type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase })
      .toString();
    const connection = connectWritten(upstream.origin, {
      upstream: `tls:
  ca: \${{ env.CA }}
  cert: \${{ secrets.CERT }}
  key: \${{ secrets.KEY }}
  passphrase: \${{ secrets.PASS }}`,
      env: { CA: authority.ca.replaceAll('\n', '\\n') },
      secrets: { CERT: first.cert, KEY, PASS: passphrase },
    });
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'first' });
    connection.values.secrets.CERT = second.cert;
    connection.values.secrets.KEY = second.key;
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'second' });
  });

  test('is read again when its files change', async () => {
    const upstream = await serveAsking();
    const change = (name: string): void => {
      copyFileSync(join(authority.folder, `${name}.pem`), join(authority.folder, 'current.pem'));
      copyFileSync(join(authority.folder, `${name}.key`), join(authority.folder, 'current.key'));
    };
    change('first');
    const connection = connectWritten(upstream.origin, {
      upstream: files.replaceAll('first.', 'current.'),
      file: beside(),
    });
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'first' });
    change('second');
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'second' });
  });

  test('reaches the upstream through the tunnel of a proxy', async () => {
    const upstream = await serveAsking();
    const proxy = await serveProxy();
    const connection = connectWritten(upstream.origin, {
      upstream: `${files}\nproxy: ${proxy.url}`,
      file: beside(),
    });
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'first' });
  });

  test.each([
    ['', null],
    [', credentials: true', 'first'],
  ])('is shown to a host of allowHosts only with credentials%s', async (credentials, name) => {
    const upstream = await serveAsking();
    const other = await serveAsking();
    const connection = connectWritten(upstream.origin, {
      upstream: `${files}\nallowHosts: [{ host: "127.0.0.1:${other.port}"${credentials} }]`,
      file: beside(),
      steps: ['{ request: "GET ${{ args.url }}" }'],
    });
    const reply = replied(await connection.perform(0, { args: { url: `${other.origin}/a` } }));
    expect(reply.response.body).toEqual({ name });
  });

  test('is shown to the host of a login that the file names', async () => {
    const upstream = await serveAsking();
    const issuer = await serveAsking();
    const connection = connectWritten(upstream.origin, {
      upstream: `${files}
login: { request: "POST \${{ env.ISSUER }}/token", capture: { who: response.body.name } }
headers: { X-Who: "\${{ login.who }}" }`,
      env: { ISSUER: issuer.origin },
      file: beside(),
    });
    replied(await connection.perform());
    expect(upstream.seen[0]?.headers['x-who']).toBe('first');
  });
});

test('servername is the name that the certificate of the upstream must have', async () => {
  const upstream = await serveAsking(named);
  const written = (servername: string) => ({
    upstream: `tls: { ca: ca.pem, servername: ${servername} }`,
    file: beside(),
    secrets: {},
  });
  const right = connectWritten(upstream.origin, written('jobs.internal.test'));
  for (const _time of [1, 2]) expect(replied(await right.perform()).response.status).toBe(403n);
  expect(upstream.seen.map(({ connection: number }) => number)).toEqual([1, 1]);
  const wrong = connectWritten(upstream.origin, written('other.internal.test'));
  expect(failed(await wrong.perform()).reason).toContain('is for another name');
});

/** Ends the handshake with an alert unless the client shows a certificate, as most servers but Node's do. */
async function serveStrictly(): Promise<string> {
  const child: ChildProcess = spawn(
    'openssl',
    [
      ...[
        's_server',
        '-accept',
        '127.0.0.1:0',
        '-cert',
        'server.pem',
        '-key',
        'server.key',
        '-CAfile',
        'ca.pem',
      ],
      ...['-Verify', '1', '-verify_return_error', '-www'],
    ],
    { cwd: authority.folder, stdio: ['ignore', 'pipe', 'ignore'] },
  );
  onTestFinished(() => void child.kill());
  let said = '';
  for (;;) {
    const [chunk] = (await once(child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
    said += chunk.toString();
    const port = /ACCEPT [^\n]*:(\d+)/.exec(said)?.[1];
    if (port !== undefined) return `https://127.0.0.1:${port}`;
  }
}

test('a host that refuses the certificate is a credential failure of a request that nobody read', async () => {
  const connection = connectWritten(await serveStrictly(), {
    upstream: 'ca: ca.pem',
    file: beside(),
    steps: ['{ request: POST /jobs, json: {} }'],
  });
  const result = failed(await connection.perform());
  expect(result).toMatchObject({ code: 'credential', sent: false });
  expect(result.reason).toMatch(/refuses the client certificate \(ERR_SSL_\w+CERTIFICATE_REQUIRED\)/);
});

describe('a certificate that can not be used', () => {
  const fault = async (upstream: string): Promise<ReturnType<typeof failed>> =>
    failed(await connectWritten('https://127.0.0.1:1', { upstream, file: beside() }).perform());

  test('is a credential failure before anything is sent, which names the file', async () => {
    expect(await fault('tls: { cert: none.pem, key: first.key }')).toEqual({
      kind: 'failed',
      code: 'credential',
      sent: false,
      reason: `upstream.tls.cert can't be read: ${join(authority.folder, 'none.pem')} (ENOENT)`,
    });
  });

  test('is told when certificate and key do not belong together', async () => {
    const result = await fault('tls: { cert: first.pem, key: second.key }');
    expect(result).toMatchObject({ code: 'credential', sent: false });
    expect(result.reason).toContain('cert and key are no PEM certificate and key that belong together');
  });

  test('is told when a file holds something else, and mends itself', async () => {
    const upstream = await serveAsking();
    const file = join(authority.folder, 'mended.pem');
    writeFileSync(file, 'nothing of use');
    const connection = connectWritten(upstream.origin, {
      upstream: 'ca: ca.pem\ntls: { cert: mended.pem, key: first.key }',
      file: beside(),
    });
    expect(failed(await connection.perform()).code).toBe('credential');
    copyFileSync(join(authority.folder, 'first.pem'), file);
    expect(replied(await connection.perform()).response.body).toEqual({ name: 'first' });
  });
});

test.each([
  ['tls: { cert: a.pem }', 'upstream.tls: a client certificate needs both cert and key'],
  ['tls: { passphrase: "${{ secrets.PASS }}" }', 'upstream.tls.passphrase: needs key, which it opens'],
  ['ca: a.pem\ntls: { ca: b.pem }', 'upstream.ca: is short for tls: { ca }, which is there too'],
  ['ca: "-----BEGIN CERTIFICATE-----"', 'upstream.ca: must be a file or a hole'],
  ['tls: { certs: a.pem }', 'upstream.tls.certs: unknown key "certs", did you mean "cert"?'],
])('%s is refused', (upstream, message) => {
  expect(faultsOf({ upstream, secrets: { PASS: '' } })).toEqual([message]);
});
