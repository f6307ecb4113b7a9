// Request bodies: structures are serialised, never spliced.

import type { Scope } from '../../config/expression.ts';
import { stringifyExact } from '../../exact-json.ts';
import type { HttpBody } from './compiled.ts';
import { encodeMultipart } from './multipart.ts';
import { pairsOf } from './query.ts';
import { RequestFault } from './request-fault.ts';

export interface RenderedBody {
  contentType: string;
  /** True when the content type belongs to the bytes (a multipart boundary) and can't be set by a header. */
  fixedType: boolean;
  bytes: Buffer;
}

/** @throws RequestFault, EvaluationFault */
export function renderBody(body: HttpBody, scope: Scope): RenderedBody {
  switch (body.kind) {
    case 'json': {
      const value = body.value.render(scope);
      if (value === undefined) throw new RequestFault('json gives no value to send');
      return plain('application/json', stringifyExact(value));
    }
    case 'form': {
      const pairs = pairsOf(body.value.render(scope), 'form');
      return plain(
        'application/x-www-form-urlencoded',
        new URLSearchParams(pairs.map(([name, value]): [string, string] => [name, value])).toString(),
      );
    }
    case 'text':
      return plain(body.contentType, body.value.render(scope));
    case 'multipart': {
      const parts = body.parts.map(({ name, file, data }) => ({
        name,
        file: file && { filename: file.filename.render(scope), contentType: file.contentType },
        data: data.render(scope),
      }));
      return { ...encodeMultipart(parts), fixedType: true };
    }
  }
}

/** Names the body's templates read, to see whether one reads a secret. */
export function bodyReads(body: HttpBody): readonly ReadonlySet<string>[] {
  if (body.kind !== 'multipart') return [body.value.reads];
  return body.parts.flatMap(({ data, file }) => (file ? [data.reads, file.filename.reads] : [data.reads]));
}

function plain(contentType: string, text: string): RenderedBody {
  return { contentType, fixedType: false, bytes: Buffer.from(text) };
}
