// The HTTP driver: its part of the adapter format and its connections.

import { EvaluationFault } from '../../config/expression.ts';
import type { Driver } from '../driver.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { connectHttp, type HttpOptions } from './connection.ts';
import { httpFormat } from './format.ts';
import { jwtFault } from './jwt.ts';
import { RequestFault } from './request-fault.ts';
import { parseBase } from './target.ts';

/** @param options shared by all connections of this driver. */
export function createHttpDriver(options: HttpOptions = {}): Driver<HttpUpstream, HttpStep> {
  return {
    format: httpFormat,
    verify: ({ baseUrl, jwt }, values) => {
      try {
        parseBase(baseUrl.render(values));
        return jwtFault(jwt, values);
      } catch (error) {
        if (error instanceof RequestFault || error instanceof EvaluationFault) return error.message;
        throw error;
      }
    },
    connect: (upstream, context) => connectHttp(upstream, context, options),
  };
}
