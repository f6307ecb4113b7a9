// Fields of `upstream:` for TLS: what is trusted, and the certificate that proves who asks.

import { z } from 'zod';
import { strict, template } from '../../config/shape.ts';

const pem = (what: string): z.ZodOptional<z.ZodString> =>
  z
    .string()
    .min(1)
    .describe(`${what}: a PEM file, relative to this file, or a hole that gives the PEM text.`)
    .optional();

export const tlsShape = {
  ca: pem('Certificate of an authority to trust as well; short for tls: { ca }'),
  tls: strict({
    ca: pem('Certificate of an authority to trust as well'),
    cert: pem('Client certificate, with its chain'),
    key: pem('Private key of the client certificate'),
    passphrase: template('Of an encrypted key.').optional(),
    servername: template(
      "Name that the upstream's certificate must have and that is asked for (SNI). Default: the host of baseUrl.",
    ).optional(),
  })
    .describe('What is trusted, and the client certificate (mutual TLS). Read again when it changes.')
    .optional(),
};

export type RawTls = z.infer<z.ZodObject<typeof tlsShape>>;
