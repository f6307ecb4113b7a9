// The HTTP part of an adapter, compiled: request lines, bodies, log-ins, time-outs.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: holes are part of the files.

import { describe, expect, it } from 'vitest';
import { loadAdapter } from '../../../src/config/load.ts';
import type { HttpStep, HttpUpstream } from '../../../src/drivers/http/compiled.ts';
import { renderHeaders } from '../../../src/drivers/http/credentials.ts';
import { httpFormat } from '../../../src/drivers/http/format.ts';
import { formatProblem } from '../../../src/errors.ts';

const scope = {
  args: { job: 'a/b', n: 7n },
  task: { key: 'k-1' },
  secrets: { TOKEN: 't' },
  env: { HOST: 'ci.example.com' },
};

const wrongValue = "holds a line break or another character that a header can't";

function load(upstream: string, step: string) {
  return loadAdapter(
    `version: 1
name: sample
env: [HOST]
secrets: [TOKEN]
upstream: { driver: http, ${upstream} }
tools:
  run:
    description: Runs.
    input: { type: object, required: [job, n], properties: { job: { type: string }, n: { type: integer } } }
    call: ${step}
`,
    { file: 'sample.yaml', formats: [httpFormat] },
  );
}

function step(written: string): HttpStep {
  const { adapter, problems } = load('baseUrl: "https://ci.example.com"', written);
  expect(problems.map(formatProblem)).toEqual([]);
  return adapter?.tools[0]?.create[0]?.request as HttpStep;
}

function upstream(written: string): HttpUpstream {
  const { adapter, problems } = load(written, '{ request: GET / }');
  expect(problems.map(formatProblem)).toEqual([]);
  return adapter?.upstream.config as HttpUpstream;
}

function stepFaults(written: string): string[] {
  return load('baseUrl: "https://ci.example.com"', written).problems.map(({ message }) => message);
}

function upstreamFaults(written: string): string[] {
  return load(written, '{ request: GET / }').problems.map(({ message }) => message);
}

describe('the request line', () => {
  it('is a method and a path, whose holes stay apart from the literal text', () => {
    const { method, target, read } = step('{ request: "DELETE /jobs/${{ args.job }}/x?all=1" }');
    expect({ method, read }).toEqual({ method: 'DELETE', read: 'json' });
    expect(
      target.kind === 'path' && target.path.parts.map((part) => (typeof part === 'string' ? part : 'hole')),
    ).toEqual(['/jobs/', 'hole', '/x?all=1']);
  });

  it('that starts with a hole is a URL out of a reply', () => {
    const { target } = step('{ request: "GET ${{ args.job }}api/json" }');
    expect(target.kind === 'url' && target.url.render(scope)).toBe('a/bapi/json');
  });

  it('of HEAD reads no body', () => {
    expect(step('{ request: HEAD /jobs }').read).toBe('none');
    expect(stepFaults('{ request: HEAD /jobs, read: json }')).toEqual([
      'the reply to a HEAD request has no body',
    ]);
  });

  it.each([
    ['GET', 'has no target'],
    ['get /jobs', '"get" is no request method'],
    ['GET https://other.example.com/', 'the target names a host'],
    ['GET //other.example.com/', 'the target names a host'],
    ['GET /a/../b', 'the path holds a "." or ".." segment'],
    ['GET /a/%2e%2E/b', 'the path holds a "." or ".." segment'],
    ['GET /a b', 'the target holds white space'],
    ['GET /a#b', 'the target holds a fragment (#…), which is never sent'],
    ['GET /a\\\\b', 'the target holds a backslash'],
  ])('%s is refused', (line, message) => {
    expect(stepFaults(`{ request: "${line}" }`)).toEqual([message]);
  });

  it('takes no secret', () => {
    expect(stepFaults('{ request: "GET /x?token=${{ secrets.TOKEN }}" }')).toEqual([
      '"secrets" can\'t be read here',
    ]);
  });
});

describe('bodies', () => {
  it('are JSON with the types of their holes', () => {
    const { body } = step(
      '{ request: POST /x, json: { n: "${{ args.n }}", t: "n=${{ args.n }}", key: "${{ secrets.TOKEN }}" } }',
    );
    expect(body?.kind === 'json' && body.value.render(scope)).toEqual({ n: 7n, t: 'n=7', key: 't' });
  });

  it('are forms, as a map or as one hole', () => {
    for (const form of ['{ job: "${{ args.job }}" }', '\'${{ {"job": args.job} }}\'']) {
      const { body } = step(`{ request: POST /x, form: ${form} }`);
      expect(body?.kind === 'form' && body.value.render(scope)).toEqual({ job: 'a/b' });
    }
  });

  it('are text, with a media type', () => {
    expect(step('{ request: POST /x, text: "n=${{ args.n }}" }').body).toMatchObject({
      kind: 'text',
      contentType: 'text/plain; charset=utf-8',
    });
    const { body } = step('{ request: POST /x, text: { data: "<n/>", contentType: application/xml } }');
    expect(body).toMatchObject({ kind: 'text', contentType: 'application/xml', value: { source: '<n/>' } });
  });

  it('are multipart, with files and plain fields', () => {
    const { body } = step(
      '{ request: POST /x, multipart: { purpose: batch, note: { data: x }, file: { filename: "${{ task.key }}.txt", data: "${{ args.job }}" } } }',
    );
    const parts = body?.kind === 'multipart' ? body.parts : [];
    expect(parts.map(({ name, file }) => [name, file?.contentType, file?.filename.render(scope)])).toEqual([
      ['purpose', undefined, undefined],
      ['note', undefined, undefined],
      ['file', 'application/octet-stream', 'k-1.txt'],
    ]);
  });

  it.each([
    ['{ request: POST /x, json: {}, text: a }', 'a request has one body, and json is there too'],
    ['{ request: GET /x, json: {} }', 'a GET request has no body'],
    ['{ request: POST /x, form: text }', 'must be a map, or a hole that gives a map'],
    [
      '{ request: POST /x, multipart: { a: { data: x, contentType: text/css } } }',
      'only a file has a media type',
    ],
    ['{ request: POST /x, text: { data: x, contentType: "a\\nb" } }', wrongValue],
  ])('%s is refused', (written, message) => {
    expect(stepFaults(written)).toEqual([message]);
  });
});

describe('headers', () => {
  it('are texts', () => {
    const { headers } = step('{ request: GET /x, headers: { X-Job: "${{ args.job }}" } }');
    expect(renderHeaders(headers, scope)).toEqual([['X-Job', 'a/b']]);
  });

  it.each([
    ['{ "X Y": a }', '"X Y" is no header name'],
    ['{ Content-Length: "3" }', 'the header Content-Length is set by taskferry itself'],
    ['{ Proxy-Connection: close }', 'the header Proxy-Connection is set by taskferry itself'],
    ['{ X-A: a, x-a: b }', 'is the same header as X-A'],
    ['{ X-A: "a\\r\\nX-B: b" }', wrongValue],
    ['{ X-A: "Zoë ${{ args.job }}" }', wrongValue],
  ])('%s are refused', (headers, message) => {
    expect(stepFaults(`{ request: GET /x, headers: ${headers} }`)).toEqual([message]);
  });
});

describe('the upstream', () => {
  it('has defaults', () => {
    expect(upstream('baseUrl: "https://ci.example.com/api"')).toMatchObject({
      allowHosts: [],
      auth: undefined,
      headers: [],
      query: [],
      proxy: undefined,
      tls: undefined,
      timeouts: { connect: 10_000, headers: 30_000, body: 30_000 },
      maxBytes: 1_048_576,
    });
  });

  it('may come from variables', () => {
    const config = upstream('baseUrl: "https://${{ env.HOST }}/api", proxy: "http://${{ env.HOST }}:3128"');
    expect(config.baseUrl.render(scope)).toBe('https://ci.example.com/api');
    expect(config.proxy?.render(scope)).toBe('http://ci.example.com:3128');
  });

  it.each([
    ['{ bearer: "${{ secrets.TOKEN }}" }', 'bearer'],
    ['{ basic: { username: me, password: "${{ secrets.TOKEN }}" } }', 'basic'],
    ['{ header: { name: X-Key, value: "${{ secrets.TOKEN }}" } }', 'header'],
    ['{ query: { name: key, value: "${{ secrets.TOKEN }}" } }', 'query'],
  ])('logs in by %s', (auth, kind) => {
    expect(upstream(`baseUrl: "https://x.example.com", auth: ${auth}`).auth?.kind).toBe(kind);
  });

  it.each([
    ['baseUrl: ci.example.com', 'must be an absolute http or https URL'],
    ['baseUrl: "ftp://ci.example.com"', 'must be an absolute http or https URL'],
    ['baseUrl: "ci.${{ env.HOST }}"', 'must start with http://, https:// or a hole'],
    ['baseUrl: "https://ci.example.com/?a=b"', 'must not hold a query or a fragment'],
    ['baseUrl: "https://${{ args.job }}"', '"args" can\'t be read here'],
    ['baseUrl: "https://x", auth: {}', 'must hold exactly one of bearer, basic, header, query, sigv4'],
    ['baseUrl: "https://x", auth: { header: { name: "a b", value: x } }', '"a b" is no header name'],
    ['baseUrl: "https://x", auth: { header: { name: X-Key, value: "ключ" } }', wrongValue],
    ['baseUrl: "https://x", allowHosts: ["*"]', '"*" is no host'],
    ['baseUrl: "https://x", allowHosts: ["a.*.example.com"]', '"a.*.example.com" is no host'],
    ['baseUrl: "https://x", timeouts: { connect: 0s }', 'must be between 1ms and 10m'],
    ['baseUrl: "https://x", maxBytes: 17MiB', 'must be more than nothing and at most 16MiB'],
  ])('%s is refused', (written, message) => {
    expect(upstreamFaults(written)).toEqual([message]);
  });

  it('may allow hosts, ports, subdomains and addresses', () => {
    const hosts = [
      'files.example.com',
      'files.example.com:8443',
      '*.example.com',
      '127.0.0.1:9',
      '[::1]:8080',
    ];
    expect(upstream(`baseUrl: "https://x", allowHosts: ${JSON.stringify(hosts)}`).allowHosts).toEqual(hosts);
  });
});
