// The HTTP driver: its part of the adapter format and its connections.

import type { Driver } from '../driver.ts';
import type { HttpStep, HttpUpstream } from './compiled.ts';
import { connectHttp, type HttpOptions } from './connection.ts';
import { httpFormat } from './format.ts';

/** @param options shared by all connections of this driver. */
export function createHttpDriver(options: HttpOptions = {}): Driver<HttpUpstream, HttpStep> {
  return {
    format: httpFormat,
    connect: (upstream, context) =>
      connectHttp(upstream, context, { ...options, ...(context.budget && { budget: context.budget }) }),
  };
}
