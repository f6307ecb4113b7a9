// Request headers: lower-case names, values that can't break out of their line.

import { RequestFault } from './request-fault.ts';

export type Headers = Map<string, string>;

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Visible ASCII, space and tab. What lies above is read differently by every server. */
const printable = /^[\t\x20-\x7e]*$/;

/** They describe the connection or the body, which taskferry itself makes. */
const reserved = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/**
 * Sets a header, replacing one of the same name.
 * @throws RequestFault naming the header (never its value) when name or value is not legal.
 */
export function setHeader(headers: Headers, name: string, value: string): void {
  const key = name.toLowerCase();
  if (!token.test(name)) throw new RequestFault(`${JSON.stringify(name)} is not a legal header name`);
  if (reserved.has(key)) throw new RequestFault(`the header ${name} is set by taskferry itself; remove it`);
  if (!printable.test(value)) {
    throw new RequestFault(
      `the value of the header ${name} holds a line break or another character that a header can't`,
    );
  }
  headers.set(key, value.trim());
}
