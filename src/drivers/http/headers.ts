// Request headers: lower-case names, values that can't break out of their line.

import { headerNameFault, headerValueFault } from './header-rules.ts';
import { RequestFault } from './request-fault.ts';

export type Headers = Map<string, string>;

/**
 * Sets a header, replacing one of the same name.
 * @throws RequestFault naming the header (never its value) when name or value is not legal.
 */
export function setHeader(headers: Headers, name: string, value: string): void {
  const wrongName = headerNameFault(name);
  if (wrongName !== undefined) throw new RequestFault(wrongName);
  const wrongValue = headerValueFault(value);
  if (wrongValue !== undefined) throw new RequestFault(`the value of the header ${name} ${wrongValue}`);
  headers.set(name.toLowerCase(), value.trim());
}
