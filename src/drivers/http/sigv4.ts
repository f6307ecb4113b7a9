// AWS Signature Version 4 over a request as it goes out.

import { createHash } from 'node:crypto';
import { AwsV4Signer } from 'aws4fetch';

export interface SigV4Credentials {
  region: string;
  service: string;
  accessKeyId: string;
  secretAccessKey: string;
  /** Empty: none. */
  sessionToken: string;
}

export interface Signable {
  method: string;
  url: URL;
  /** Lower-case names. */
  headers: { readonly [name: string]: string };
  body: Buffer | undefined;
}

/**
 * The headers to add. What is signed: method, path, query, the hash of the body, `host`, `content-type` and every
 * `x-amz-` header. Others are left alone, since proxies may change them.
 * @param now wall time, milliseconds: a signature holds for a few minutes.
 */
export async function signatureHeaders(
  { method, url, headers, body }: Signable,
  credentials: SigV4Credentials,
  now: number,
): Promise<{ [name: string]: string }> {
  const { sessionToken, ...rest } = credentials;
  const signed = Object.entries(headers).filter(
    ([name]) => name === 'content-type' || name.startsWith('x-amz-'),
  );
  const signer = new AwsV4Signer({
    ...rest,
    ...(sessionToken !== '' && { sessionToken }),
    method,
    url: url.href,
    headers: {
      ...Object.fromEntries(signed),
      'x-amz-content-sha256': createHash('sha256')
        .update(body ?? '')
        .digest('hex'),
    },
    datetime: new Date(now).toISOString().replace(/[:-]|\.\d{3}/g, ''),
    allHeaders: true,
  });
  const { headers: all } = await signer.sign();
  const added = ['authorization', 'x-amz-date', 'x-amz-content-sha256', 'x-amz-security-token'];
  return Object.fromEntries(
    added.flatMap((name) => {
      const value = all.get(name);
      return value === null ? [] : [[name, value]];
    }),
  );
}
