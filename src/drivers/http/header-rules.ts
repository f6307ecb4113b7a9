// What a request header may be, for the check of an adapter and for each request alike.

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

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

/** Visible ASCII, space and tab. What lies above is read differently by every server. */
const printable = /^[\t\x20-\x7e]*$/;

/** Why no header of this name can be sent, as a sentence without its end; undefined when it can. */
export function headerNameFault(name: string): string | undefined {
  if (!token.test(name)) return `${JSON.stringify(name)} is no header name`;
  return reserved.has(name.toLowerCase()) ? `the header ${name} is set by taskferry itself` : undefined;
}

/** Why a header can't have this value, to be read after what has it; never shows the value. */
export function headerValueFault(value: string): string | undefined {
  return printable.test(value) ? undefined : "holds a line break or another character that a header can't";
}
