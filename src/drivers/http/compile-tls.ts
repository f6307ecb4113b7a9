// Compiling `upstream.ca` and `upstream.tls`.

import type { Compiler, Path } from '../../config/driver-format.ts';
import { hasHole } from '../../config/template.ts';
import type { HttpTls, PemSource } from './compiled.ts';
import type { RawTls } from './shape-tls.ts';

export function compileTls({ ca, tls }: RawTls, compiler: Compiler): HttpTls | undefined {
  if (ca === undefined && tls === undefined) return undefined;
  if (ca !== undefined && tls?.ca !== undefined)
    compiler.problem(['ca'], 'is short for tls: { ca }, which is there too');
  if (tls !== undefined && (tls.cert === undefined) !== (tls.key === undefined))
    compiler.problem(['tls'], 'a client certificate needs both cert and key');
  if (tls?.passphrase !== undefined && tls.key === undefined)
    compiler.problem(['tls', 'passphrase'], 'needs key, which it opens');
  const text = (field: 'passphrase' | 'servername'): HttpTls['servername'] => {
    const source = tls?.[field];
    return source === undefined ? undefined : compiler.text(['tls', field], source);
  };
  return {
    ca: ca === undefined ? pem(tls?.ca, ['tls', 'ca'], compiler) : pem(ca, ['ca'], compiler),
    cert: pem(tls?.cert, ['tls', 'cert'], compiler),
    key: pem(tls?.key, ['tls', 'key'], compiler),
    passphrase: text('passphrase'),
    servername: text('servername'),
  };
}

function pem(source: string | undefined, path: Path, compiler: Compiler): PemSource | undefined {
  if (source === undefined) return undefined;
  const field = ['upstream', ...path].join('.');
  if (source.includes('-----BEGIN')) {
    compiler.problem(path, 'must be a file or a hole', 'put the PEM text into a variable or a file');
    return undefined;
  }
  return hasHole(source)
    ? { field, text: compiler.text(path, source) }
    : { field, file: compiler.file(source) };
}
