// The HTTP driver's fields of the adapter format, as they are written: under `upstream:` and in a step.

import { z } from 'zod';
import { duration, size, strict, structure, template } from '../../config/shape.ts';
import { allowHostsShape, authShape, stepAuthShape } from './shape-auth.ts';

const texts = (description: string): z.ZodRecord<z.ZodString, z.ZodString> =>
  z.record(z.string(), z.string()).describe(description);

const headers = (description: string): z.ZodType<string | { [name: string]: string }> =>
  z
    .union([z.record(z.string(), z.string()), z.string()], {
      error: 'must be a map of texts, or a hole that gives a map',
    })
    .describe(`${description} A map, or one hole that gives a map.`);

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
    .enum(['json', 'text', 'jsonl', 'none'])
    .describe('How the reply body is read. Default json (none for HEAD).')
    .optional(),
};

export type RawUpstream = z.infer<z.ZodObject<typeof upstreamShape>>;
export type RawStep = z.infer<z.ZodObject<typeof stepShape>>;
