// Upstreams, steps and connections for the HTTP driver's tests.

import type { ServerOptions } from 'node:https';
import { onTestFinished } from 'vitest';
import type { TextTemplate } from '../../../src/config/template.ts';
import type { ConnectContext, Connection, StepReply } from '../../../src/drivers/driver.ts';
import type { HttpStep, HttpUpstream } from '../../../src/drivers/http/compiled.ts';
import { connectHttp, type HttpOptions } from '../../../src/drivers/http/connection.ts';
import type { JsonObject } from '../../../src/exact-json.ts';
import { type Handler, startHttpServer, type TestServer } from '../../helpers/http-server.ts';
import { fixed, text } from '../../helpers/templates.ts';

export type UpstreamParts = Partial<Omit<HttpUpstream, 'baseUrl'>> & {
  baseUrl?: string;
  /** A PEM file. */
  ca?: string;
};

const noTls = {
  ca: undefined,
  cert: undefined,
  key: undefined,
  passphrase: undefined,
  servername: undefined,
};

export function upstream({ baseUrl = 'http://127.0.0.1:1', ca, ...rest }: UpstreamParts = {}): HttpUpstream {
  return {
    baseUrl: fixed(baseUrl),
    allowHosts: [],
    credentialHosts: [],
    auth: undefined,
    headers: [],
    query: [],
    jwt: [],
    login: undefined,
    proxy: undefined,
    tls: ca === undefined ? undefined : { ...noTls, ca: { field: 'upstream.ca', file: ca } },
    rateLimit: [],
    timeouts: { connect: 1000, headers: 1000, body: 1000 },
    maxBytes: 1024 * 1024,
    ...rest,
  };
}

/** GET of a path, read as JSON. */
export function step(path: TextTemplate, rest: Partial<HttpStep> = {}): HttpStep {
  return {
    method: 'GET',
    target: { kind: 'path', path },
    query: undefined,
    headers: [],
    auth: undefined,
    body: undefined,
    read: 'json',
    unzip: undefined,
    keep: undefined,
    redirects: 0,
    pages: undefined,
    etag: false,
    ...rest,
  };
}

/** GET of the URL in `job.url`. */
export function follow(rest: Partial<HttpStep> = {}, url: TextTemplate = text`${'job.url'}`): HttpStep {
  return step(url, { target: { kind: 'url', url }, ...rest });
}

export const getJob = step(text`/job`);
export const postJob = step(text`/jobs`, { method: 'POST' });

export function credentials(secrets: JsonObject = {}, env: JsonObject = {}): ConnectContext {
  return { variables: () => ({ env, secrets }), refreshSecrets: () => false };
}

/** A connection that is closed with the test. The process's proxy variables don't apply. */
export function connect(
  parts: UpstreamParts,
  context: ConnectContext = credentials(),
  options: HttpOptions = {},
): Connection<HttpStep> {
  const connection = connectHttp(upstream(parts), context, { env: {}, ...options });
  onTestFinished(() => connection.close());
  return connection;
}

/** A server that is closed with the test. */
export async function serve(handler?: Handler, tls?: ServerOptions): Promise<TestServer> {
  const server = await startHttpServer(handler, tls);
  onTestFinished(() => server.close());
  return server;
}

export type Replied = Extract<StepReply, { kind: 'reply' }>;
export type Failed = Extract<StepReply, { kind: 'failed' }>;

export function replied(reply: StepReply): Replied {
  if (reply.kind !== 'reply') throw new Error(`failed instead: ${reply.code}, ${reply.reason}`);
  return reply;
}

export function failed(reply: StepReply): Failed {
  if (reply.kind !== 'failed') throw new Error(`a reply instead: ${String(reply.response.status)}`);
  return reply;
}
