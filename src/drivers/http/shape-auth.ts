// Fields of the adapter format that say how requests prove who they are, and which hosts may know.

import { z } from 'zod';
import { strict, template } from '../../config/shape.ts';

const authFields = {
  bearer: template('Token, sent as Authorization: Bearer.').optional(),
  basic: strict({ username: template('User name.'), password: template('Password.') })
    .describe('Sent as Authorization: Basic.')
    .optional(),
  header: strict({ name: z.string().describe('Header name.'), value: template('Header value.') })
    .describe("A header of the system's own.")
    .optional(),
  query: strict({
    name: z.string().min(1).describe('Parameter name.'),
    value: template('Parameter value.'),
  })
    .describe('A query parameter.')
    .optional(),
  sigv4: strict({
    region: template('For example eu-central-1.'),
    service: template('Name of the service in signatures, for example batch.'),
    accessKeyId: template('Access key id.'),
    secretAccessKey: template('Secret access key.'),
    sessionToken: template('Of temporary credentials. Default, and when it is empty: none.').optional(),
  })
    .describe('AWS Signature Version 4 over the request as it is sent.')
    .optional(),
};

const example = `for example { bearer: "$${'{{ secrets.API_TOKEN }}'}" }`;

export const authShape = strict(authFields, `must be a map, ${example}`);

export const stepAuthShape = z
  .union([z.literal('none'), authShape], { error: `must be none, or a map as in upstream.auth, ${example}` })
  .describe(
    "How this request alone proves who it is, instead of upstream.auth. none: without the upstream's auth, and without those of its headers and query parameters that read a secret.",
  );

export const allowHostsShape = z.array(
  z.union(
    [
      z.string(),
      strict({
        host: z.string().describe('host, host:port or *.domain.'),
        credentials: z
          .boolean()
          .describe('Whether credentials go there too, as to the upstream itself. Default false.')
          .optional(),
      }),
    ],
    { error: 'must be a host, or a map of host and credentials' },
  ),
);

export type RawAuth = z.infer<typeof authShape>;
export type RawAllowedHost = z.infer<typeof allowHostsShape>[number];
