// multipart/form-data bodies of text parts.

import { createHash } from 'node:crypto';
import { hasControl } from './path-encode.ts';
import { RequestFault } from './request-fault.ts';

export interface Part {
  name: string;
  /** Undefined: a plain field. */
  file: { filename: string; contentType: string } | undefined;
  data: string;
}

/**
 * The boundary is a digest of the parts: it can't occur in them, and the same parts give the same bytes, so
 * that a repeated request equals the first.
 * @throws RequestFault for a content type with line breaks or control characters.
 */
export function encodeMultipart(parts: readonly Part[]): { contentType: string; bytes: Buffer } {
  const digest = createHash('sha256').update(JSON.stringify(parts)).digest('hex');
  const boundary = `taskferry-${digest.slice(0, 40)}`;
  const pieces = parts.map((part) => `--${boundary}\r\n${partHead(part)}\r\n\r\n${part.data}\r\n`);
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    bytes: Buffer.from(`${pieces.join('')}--${boundary}--\r\n`),
  };
}

function partHead({ name, file }: Part): string {
  const disposition = `Content-Disposition: form-data; name="${quoted(name)}"`;
  if (file === undefined) return disposition;
  if (hasControl(file.contentType)) {
    throw new RequestFault(`the content type of the file ${name} holds a line break or control character`);
  }
  return `${disposition}; filename="${quoted(file.filename)}"\r\nContent-Type: ${file.contentType}`;
}

/** Browsers escape just these; everything else goes as UTF-8. */
function quoted(text: string): string {
  return text.replaceAll('\r', '%0D').replaceAll('\n', '%0A').replaceAll('"', '%22');
}
