// What the HTTP part of an adapter compiles to: the upstream and the steps that the transport performs.

import type { Expression } from '../../config/expression.ts';
import type { TextTemplate, ValueTemplate } from '../../config/template.ts';
import type { Keep } from './kept-part.ts';
import type { Pages } from './pages.ts';
import type { RateLimitNames } from './rate-limit.ts';
import type { jwtAlgorithms } from './shape-jwt.ts';
import type { SigV4Credentials } from './sigv4.ts';

export interface HttpUpstream {
  /** Absolute http(s) URL; its path is a prefix of every request. Reads env only. */
  baseUrl: TextTemplate;
  /** Further hosts (`host`, `host:port`, `*.domain`) that a reply-chosen URL may point at. */
  allowHosts: readonly string[];
  /** Those of `allowHosts` that get credentials as the upstream does, unless they would weaken https to http. */
  credentialHosts: readonly string[];
  auth: HttpAuth | undefined;
  headers: readonly HeaderSource[];
  query: readonly NamedText[];
  jwt: readonly JwtToken[];
  login: HttpLogin | undefined;
  /** Proxy URL; without it HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process apply. */
  proxy: TextTemplate | undefined;
  tls: HttpTls | undefined;
  /** Where the upstream tells its limits, beside the headers that many APIs share. */
  rateLimit: readonly RateLimitNames[];
  timeouts: HttpTimeouts;
  /** Most bytes of a reply that is not a result. Default 1 MiB. */
  maxBytes: number;
}

export interface HttpTls {
  /** A private certificate authority, trusted beside the system's. */
  ca: PemSource | undefined;
  /** Shown to the upstream and other hosts that get credentials. There with `key`, or not at all. */
  cert: PemSource | undefined;
  key: PemSource | undefined;
  passphrase: TextTemplate | undefined;
  /** What the certificate of the upstream itself must be for, instead of the host of `baseUrl`. */
  servername: TextTemplate | undefined;
}

/** PEM in a file (absolute path) or out of variables. `field` names it in messages. */
export type PemSource = { field: string; file: string } | { field: string; text: TextTemplate };

/** All in milliseconds. Defaults: connect 10s, headers 30s, body 30s without a byte. */
export interface HttpTimeouts {
  connect: number;
  headers: number;
  body: number;
}

export type HttpAuth =
  | { kind: 'bearer'; token: TextTemplate }
  | { kind: 'basic'; username: TextTemplate; password: TextTemplate }
  | { kind: 'header'; name: string; value: TextTemplate }
  | { kind: 'query'; name: string; value: TextTemplate }
  | ({ kind: 'sigv4' } & { [field in keyof SigV4Credentials]: TextTemplate });

/** A header, or a template that gives a map of headers. */
export type HeaderSource = NamedText | { map: ValueTemplate };

/** A token that is signed here and read as `jwt.<name>` in what is sent. */
export interface JwtToken {
  name: string;
  alg: (typeof jwtAlgorithms)[number];
  /** PEM, JWK, or the shared secret of the HS algorithms. */
  key: TextTemplate;
  passphrase: TextTemplate | undefined;
  header: ValueTemplate | undefined;
  /** Without `iat` and `exp`. */
  claims: ValueTemplate | undefined;
  /** From `iat` to `exp`. */
  lifetimeMs: number;
  /** With a random `jti`, and therefore made anew for every request. */
  jti: boolean;
}

/** Requests whose captures are read as `login.<name>` in what other requests send. */
export interface HttpLogin {
  /** In order; later ones may read what earlier ones captured. */
  steps: readonly LoginStep[];
  /** True when a reply says that the login is no longer accepted. Undefined: a 401 says so. */
  renewOn: Expression | undefined;
}

export interface LoginStep {
  name: string;
  request: HttpStep;
  /** Undefined: any 2xx. */
  expect: Expression | undefined;
  capture: readonly { name: string; value: Expression; optional: boolean }[];
  /** How long the login holds, in milliseconds or as an expression over the reply. Undefined: nothing is said. */
  expires: number | Expression | undefined;
}

export interface NamedText {
  name: string;
  value: TextTemplate;
}

export interface HttpStep {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  target: HttpTarget;
  query: ValueTemplate | undefined;
  headers: readonly HeaderSource[];
  /** Instead of the upstream's `auth`; `none`: without any of the upstream's credentials. */
  auth: HttpAuth | 'none' | undefined;
  body: HttpBody | undefined;
  read: ReadKind;
  /** The body is a zip archive: the name or pattern of the entries that are read. */
  unzip: TextTemplate | undefined;
  /** Only this end of the body is read, however long it is. Undefined: all of it, or too large. */
  keep: Keep | undefined;
  /** Redirects that are followed in a row. Default 0: a redirect is a reply like any other. */
  redirects: number;
  /** The reply is one page of a list, and further ones follow. */
  pages: Pages | undefined;
  /** The reply is remembered by its ETag, and asked for again only if it has changed. Default false. */
  etag: boolean;
}

/** How the reply's body is read. `none` ignores it. */
export type ReadKind = 'json' | 'text' | 'jsonl' | 'csv' | 'base64' | 'none';

export type HttpTarget =
  /** A path under baseUrl; each hole is one percent-encoded segment part. */
  | { kind: 'path'; path: TextTemplate }
  /** The target starts with a hole: an absolute URL out of a reply, plus what follows the hole. */
  | { kind: 'url'; url: TextTemplate }
  /** An absolute URL that the file or `env` names; only in a login. */
  | { kind: 'fixed'; url: TextTemplate };

export type HttpBody =
  | { kind: 'json'; value: ValueTemplate }
  | { kind: 'form'; value: ValueTemplate }
  | { kind: 'text'; value: TextTemplate; contentType: string }
  | { kind: 'multipart'; parts: readonly MultipartPart[] };

export interface MultipartPart {
  name: string;
  /** Undefined: a plain field. */
  file: { filename: TextTemplate; contentType: string } | undefined;
  data: TextTemplate;
}
