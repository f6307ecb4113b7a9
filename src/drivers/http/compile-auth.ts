// Compiling `auth`, of the upstream or of one step: exactly one way to prove who asks.

import type { Compiler, Path } from '../../config/driver-format.ts';
import type { TextTemplate } from '../../config/template.ts';
import { checkHeaderName, compileHeaderValue } from './compile-headers.ts';
import type { HttpAuth } from './compiled.ts';
import type { RawAuth } from './shape-auth.ts';

export function compileAuth(raw: RawAuth, path: Path, compiler: Compiler): HttpAuth | undefined {
  if (Object.keys(raw).length !== 1) {
    compiler.problem(path, 'must hold exactly one of bearer, basic, header, query, sigv4');
    return undefined;
  }
  const at = (...names: string[]): Path => [...path, ...names];
  if (raw.bearer !== undefined) return { kind: 'bearer', token: compiler.text(at('bearer'), raw.bearer) };
  if (raw.basic !== undefined)
    return {
      kind: 'basic',
      username: compiler.text(at('basic', 'username'), raw.basic.username),
      password: compiler.text(at('basic', 'password'), raw.basic.password),
    };
  if (raw.header !== undefined) {
    checkHeaderName(raw.header.name, at('header', 'name'), compiler);
    return {
      kind: 'header',
      name: raw.header.name,
      value: compileHeaderValue(raw.header.value, at('header', 'value'), compiler),
    };
  }
  if (raw.sigv4 !== undefined) {
    const { sigv4 } = raw;
    const field = (name: keyof typeof sigv4): TextTemplate =>
      compiler.text(at('sigv4', name), sigv4[name] ?? '');
    return {
      kind: 'sigv4',
      region: field('region'),
      service: field('service'),
      accessKeyId: field('accessKeyId'),
      secretAccessKey: field('secretAccessKey'),
      sessionToken: field('sessionToken'),
    };
  }
  if (raw.query === undefined) return undefined;
  return {
    kind: 'query',
    name: raw.query.name,
    value: compiler.text(at('query', 'value'), raw.query.value),
  };
}
