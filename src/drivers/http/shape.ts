// The HTTP driver's fields of the adapter format, as they are written: under `upstream:` and in a step.

import { z } from 'zod';
import { cel, duration, oneOrMany, size, strict, structure, template } from '../../config/shape.ts';
import { resetForms } from './rate-limit.ts';
import { allowHostsShape, authShape, stepAuthShape } from './shape-auth.ts';

const texts = (description: string): z.ZodRecord<z.ZodString, z.ZodString> =>
  z.record(z.string(), z.string()).describe(description);

const headers = (description: string): z.ZodType<string | { [name: string]: string }> =>
  z
    .union([z.record(z.string(), z.string()), z.string()], {
      error: 'must be a map of texts, or a hole that gives a map',
    })
    .describe(`${description} A map, or one hole that gives a map.`);

const rateLimitShape = strict(
  {
    remaining: z.string().describe('Header that tells how many calls remain.'),
    reset: z.string().describe('Header that tells when the count starts anew.'),
    resetAs: z
      .enum(resetForms)
      .describe(
        'How the reset is written: epoch and epochMs are times, seconds and ms are waits. Default: told by how it looks.',
      )
      .optional(),
  },
  'must be a map, for example { remaining: X-Calls-Left, reset: X-Calls-Reset }',
);

export const upstreamShape = {
  baseUrl: template(
    'Absolute http(s) URL; its path comes before every request path. Reads env, never secrets.',
  ),
  allowHosts: allowHostsShape
    .describe(
      'Further hosts (host, host:port, *.domain) that a URL out of a reply may point at. Default: none.',
    )
    .optional(),
  auth: authShape.describe('How requests prove who they are: exactly one kind.').optional(),
  headers: headers('Headers of every request.').optional(),
  query: texts('Query parameters of every request.').optional(),
  proxy: template('Proxy URL. Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the process.').optional(),
  rateLimit: oneOrMany(rateLimitShape)
    .describe('Where else the upstream tells its limits. The headers that many APIs share are known.')
    .optional(),
  timeouts: strict({
    connect: duration('To connect. Default 10s.').optional(),
    headers: duration('Until the reply starts. Default 30s.').optional(),
    body: duration('Longest pause while the body arrives. Default 30s.').optional(),
  })
    .describe('How long the parts of an exchange may take; each between 1ms and 10m.')
    .optional(),
  maxBytes: size('Most bytes of a reply that is no result. Default 1MiB, at most 16MiB.').optional(),
};

const fileShape = strict({
  data: template('Content.'),
  filename: template('File name. Default: a plain field.').optional(),
  contentType: z.string().describe('Media type of a file. Default application/octet-stream.').optional(),
});

const pagesShape = strict(
  {
    items: cel('The list of one page.'),
    next: cel(
      'URL of the next page, absolute or relative. Without a value this page was the last one.',
    ).optional(),
    query: structure(
      'Query parameters of the next page, over those of the step. Without a value this page was the last one.',
    ).optional(),
    while: cel('Another page is asked for only while this holds. Default: always.').optional(),
    max: z.number().describe('Most pages. Default 10, at most 100.').optional(),
  },
  'must be a map, for example { items: response.body.items, next: response.body.?next }',
);

export const stepShape = {
  request: z
    .string()
    .describe(
      'METHOD target. A path under baseUrl, in which each hole is percent-encoded; or a hole that gives an absolute URL, and what follows it.',
    ),
  query: structure(
    'Query parameters: a map, or one hole that gives a map. A list repeats the parameter.',
  ).optional(),
  headers: headers('Headers of this request.').optional(),
  auth: stepAuthShape.optional(),
  json: structure('JSON body: a structure with holes.').optional(),
  form: structure('Form body: a map, or one hole that gives a map.').optional(),
  text: z
    .union(
      [z.string(), strict({ data: template('Content.'), contentType: z.string().describe('Media type.') })],
      {
        error: 'must be text, or a map of data and contentType',
      },
    )
    .describe('Text body. Default media type text/plain; charset=utf-8.')
    .optional(),
  multipart: z
    .record(
      z.string(),
      z.union([z.string(), fileShape], { error: 'must be text, or a map with data and filename' }),
    )
    .describe('Multipart body: parts by name.')
    .optional(),
  read: z
    .enum(['json', 'text', 'jsonl', 'csv', 'base64', 'none'])
    .describe('How the reply body is read. Default json (none for HEAD).')
    .optional(),
  unzip: template(
    'The body is a zip archive: name of the entry to read, or a pattern (*, **, ?), which gives a list of {name, body}.',
  ).optional(),
  keep: strict(
    {
      head: size('Most bytes that are kept of the start.').optional(),
      tail: size('Most bytes that are kept of the end.').optional(),
    },
    'must be a map, for example { tail: 64KiB }',
  )
    .describe('Keeps one end of a long text instead of failing: exactly one of head and tail.')
    .optional(),
  redirects: z
    .number()
    .describe(
      'Redirects that are followed in a row, each admitted like a URL out of a reply. Default 0, at most 5.',
    )
    .optional(),
  etag: z
    .boolean()
    .describe('Remembers the reply by its ETag and asks only whether it has changed. Default false.')
    .optional(),
  pages: pagesShape
    .describe('The reply is one page of a list: response.body becomes the list of all.')
    .optional(),
};

export type RawUpstream = z.infer<z.ZodObject<typeof upstreamShape>>;
export type RawStep = z.infer<z.ZodObject<typeof stepShape>>;
