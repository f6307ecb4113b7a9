// Certificates and keys of one connection, as they are now: files and variables are looked at for each request.

import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates } from 'node:tls';
import type { Scope } from '../../config/expression.ts';
import type { HttpTls, PemSource } from './compiled.ts';
import { ConnectRefused } from './connectors.ts';
import { RequestFault } from './request-fault.ts';

export interface TlsMaterial {
  /** Counts up when anything changed: sockets that were opened with what was before are not used any more. */
  version: number;
  /** Authorities to trust; undefined: the default ones. */
  ca: string[] | undefined;
  client: { cert: string; key: string; passphrase?: string } | undefined;
  servername: string | undefined;
}

/**
 * @param scope `env` and `secrets` now.
 * @returns what to open sockets with. It throws ConnectRefused when the authority can't be read, and RequestFault with
 *   code `credential` when the client certificate can't be read or used.
 */
export function createTlsMaterial(tls: HttpTls | undefined, scope: () => Scope): () => TlsMaterial {
  let current: { parts: Parts; material: TlsMaterial } | undefined;
  const files = new Map<string, { stamp: string; text: string }>();
  const plain: TlsMaterial = { version: 0, ca: undefined, client: undefined, servername: undefined };

  return () => {
    if (tls === undefined) return plain;
    const parts = partsOf(tls, scope(), files);
    if (current !== undefined && sameParts(current.parts, parts)) return current.material;
    const material = { ...checked(parts), version: (current?.material.version ?? 0) + 1 };
    current = { parts, material };
    return material;
  };
}

type Parts = { readonly [field in keyof HttpTls]: string | undefined };

/** @throws ConnectRefused, RequestFault, EvaluationFault */
function partsOf(tls: HttpTls, scope: Scope, files: Files): Parts {
  return {
    ca: tls.ca && authority(tls.ca, scope, files),
    cert: tls.cert && credential(tls.cert, scope, files),
    key: tls.key && credential(tls.key, scope, files),
    passphrase: tls.passphrase?.render(scope),
    servername: tls.servername?.render(scope),
  };
}

function sameParts(a: Parts, b: Parts): boolean {
  return (Object.keys(a) as (keyof Parts)[]).every((field) => a[field] === b[field]);
}

/** Refuses here what would fail at every connect, and then say less. @throws RequestFault, ConnectRefused */
function checked({ ca, cert, key, passphrase, servername }: Parts): Omit<TlsMaterial, 'version'> {
  if (ca !== undefined && !ca.includes('-----BEGIN'))
    throw new ConnectRefused('upstream.ca holds no PEM certificate');
  const client =
    cert === undefined || key === undefined
      ? undefined
      : { cert, key, ...(passphrase !== undefined && { passphrase }) };
  if (client !== undefined) {
    try {
      createSecureContext(client);
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
      throw new RequestFault(
        `upstream.tls: cert and key are no PEM certificate and key that belong together, or the passphrase is wrong${code}`,
        'credential',
      );
    }
  }
  return {
    ca: ca === undefined ? undefined : [...getCACertificates('default'), ca],
    client,
    servername,
  };
}

type Files = Map<string, { stamp: string; text: string }>;

function authority(source: PemSource, scope: Scope, files: Files): string {
  return pemText(source, scope, files, (message) => new ConnectRefused(message));
}

function credential(source: PemSource, scope: Scope, files: Files): string {
  return pemText(source, scope, files, (message) => new RequestFault(message, 'credential'));
}

function pemText(source: PemSource, scope: Scope, files: Files, fault: (message: string) => Error): string {
  // Environment files often hold the lines joined by a written \n, which no PEM has.
  if ('text' in source) return source.text.render(scope).replaceAll('\\n', '\n');
  const { field, file } = source;
  try {
    const { mtimeMs, size, ino } = statSync(file);
    const stamp = `${mtimeMs}:${size}:${ino}`;
    const known = files.get(file);
    if (known?.stamp === stamp) return known.text;
    const text = readFileSync(file, 'utf8');
    files.set(file, { stamp, text });
    return text;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : error;
    throw fault(`${field} can't be read: ${file} (${String(code)})`);
  }
}
