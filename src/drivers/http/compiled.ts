// What the HTTP part of an adapter compiles to: the upstream and the steps that the transport performs.

import type { TextTemplate, ValueTemplate } from '../../config/template.ts';

export interface HttpUpstream {
  /** Absolute http(s) URL; its path is a prefix of every request. Reads env only. */
  baseUrl: TextTemplate;
  /** Further hosts (`host`, `host:port`, `*.domain`) that a reply-chosen URL may point at. */
  allowHosts: readonly string[];
  auth: HttpAuth | undefined;
  headers: readonly NamedText[];
  query: readonly NamedText[];
  /** Proxy URL; without it HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process apply. */
  proxy: TextTemplate | undefined;
  /** PEM file of a private certificate authority, trusted beside the system's. Absolute path. */
  ca: string | undefined;
  timeouts: HttpTimeouts;
  /** Most bytes of a reply that is not a result. Default 1 MiB. */
  maxBytes: number;
}

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
  | { kind: 'query'; name: string; value: TextTemplate };

export interface NamedText {
  name: string;
  value: TextTemplate;
}

export interface HttpStep {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'HEAD';
  target: HttpTarget;
  query: ValueTemplate | undefined;
  headers: readonly NamedText[];
  body: HttpBody | undefined;
  read: ReadKind;
}

/** How the reply's body is read. `none` ignores it. */
export type ReadKind = 'json' | 'text' | 'jsonl' | 'none';

export type HttpTarget =
  /** A path under baseUrl; each hole is one percent-encoded segment part. */
  | { kind: 'path'; path: TextTemplate }
  /** The target starts with a hole: an absolute URL out of a reply, plus what follows the hole. */
  | { kind: 'url'; url: TextTemplate };

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
