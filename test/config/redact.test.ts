// Secret values must not come back in what is shown.

import { expect, it } from 'vitest';
import { createRedactor } from '../../src/config/redact.ts';

const secret = 'p$ss w/ö+rd&1';
const { redact } = createRedactor(() => [secret, 'short', 'token-12345678']);

it('replaces a secret as it is, URL-encoded, in JSON text and in base64', () => {
  const forms = [
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(secret).toLowerCase(),
    Buffer.from(secret).toString('base64'),
    Buffer.from(secret).toString('base64url'),
  ];
  for (const form of forms) expect(redact(`before ${form} after`)).toBe('before [redacted] after');
  const quoting = createRedactor(() => ['line\n"quoted"']);
  expect(quoting.redact(JSON.stringify({ error: 'bad line\n"quoted"' }))).toBe('{"error":"bad [redacted]"}');
});

it('replaces a secret in a URL that was encoded whole, and in hexadecimal', () => {
  const slashed = 'top/secret ö?x';
  const { redact: hide } = createRedactor(() => [slashed]);
  const hex = Buffer.from(slashed).toString('hex');
  expect(encodeURI(slashed)).not.toBe(encodeURIComponent(slashed));
  for (const form of [encodeURI(slashed), 'top/secret%20%c3%b6?x', hex, hex.toUpperCase()])
    expect(hide(`before ${form} after`)).toBe('before [redacted] after');
});

it('replaces a secret inside basic credentials', () => {
  for (const user of ['a', 'bo', 'eve', 'mallory']) {
    const header = Buffer.from(`${user}:token-12345678`).toString('base64');
    expect(redact(`Basic ${header}`)).toContain('[redacted]');
    expect(redact(`Basic ${header}`)).not.toContain(Buffer.from('12345678').toString('base64').slice(0, 8));
  }
});

it('leaves values under six characters alone, as they are ordinary words', () => {
  expect(redact('a short text')).toBe('a short text');
});

it('replaces every occurrence, and longer secrets first', () => {
  const nested = createRedactor(() => ['abcdef', 'abcdef-longer']);
  expect(nested.redact('abcdef-longer abcdef abcdef')).toBe('[redacted] [redacted] [redacted]');
});

it('takes up changed values', () => {
  let value = 'first-value';
  const changing = createRedactor(() => [value]);
  expect(changing.redact('first-value')).toBe('[redacted]');
  value = 'other-value';
  expect(changing.redact('first-value other-value')).toBe('first-value [redacted]');
});
