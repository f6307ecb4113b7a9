// The HTTP driver's part of the adapter format.

import type { DriverFormat } from '../../config/driver-format.ts';
import { compileStep } from './compile-step.ts';
import { compileUpstream } from './compile-upstream.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { credentialNames } from './credential-names.ts';
import { headerNameFault } from './header-rules.ts';
import { isSafe } from './safe-method.ts';
import { type RawStep, type RawUpstream, stepShape, upstreamShape } from './shape.ts';
import { jwtShape, type RawJwt } from './shape-jwt.ts';
import { loginShape, type RawLogin } from './shape-login.ts';
import { type RawTls, tlsShape } from './shape-tls.ts';

/** What the loader needs to know of HTTP: fields, and how to compile them. */
export const httpFormat: DriverFormat<HttpUpstream, HttpStep> = {
  name: 'http',
  upstream: { ...upstreamShape, ...tlsShape, ...jwtShape, ...loginShape },
  step: stepShape,
  // The loader has validated both against the shapes above.
  compileUpstream: (raw, compiler) =>
    compileUpstream(raw as RawUpstream & RawTls & RawLogin & RawJwt, compiler),
  credentials: credentialNames,
  compileStep: (raw, compiler) => compileStep(raw as RawStep, compiler),
  isSafe,
  keyHeaderFault: headerNameFault,
};
