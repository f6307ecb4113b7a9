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

it('replaces a secret that stands first in basic credentials, whatever its length', () => {
  for (const token of ['token-1234567', 'token-12345678', 'token-123456789']) {
    const header = Buffer.from(`${token}:`).toString('base64');
    const { redact: hide } = createRedactor(() => [token]);
    expect(hide(`Basic ${header}!`)).toMatch(/^Basic \[redacted\].{0,4}!$/);
    expect(hide(`Basic ${encodeURIComponent(header)}!`)).toMatch(/^Basic \[redacted\].{0,8}!$/);
  }
});

it('replaces a secret of several lines, however its white space comes back', () => {
  const key = '-----BEGIN KEY-----\r\nMIIexample/SECRET+ONE=\n\tSECRET  TWO\n-----END KEY-----';
  const { redact: hide } = createRedactor(() => [`${key}\n`]);
  const forms = [
    key,
    key.replaceAll('\r', ''),
    key.replace(/\s+/g, ' '),
    key.replace(/[\r\n]+/g, '').replaceAll('\t', ''),
    JSON.stringify(key).slice(1, -1),
    JSON.stringify(JSON.stringify(key)).slice(3, -3),
    encodeURIComponent(key),
    new URLSearchParams({ key }).toString().slice(4),
    key.replaceAll('\n', '&#10;'),
  ];
  for (const form of forms) expect(hide(`before ${form} after`)).toBe('before [redacted] after');
});

it('replaces a secret that is escaped for HTML, or as other JSON writers do it', () => {
  const value = `p&ss<wörd"1'/x`;
  const { redact: hide } = createRedactor(() => [value]);
  const forms = [
    'p&amp;ss&lt;wörd&quot;1&apos;/x',
    'p&#38;ss&#x3C;w&#246;rd&#034;1&#x27;&#47;x',
    'p\\u0026ss\\u003cw\\u00f6rd\\"1\'\\/x',
    encodeURIComponent(encodeURIComponent(value)),
  ];
  for (const form of forms) expect(hide(`before ${form} after`)).toBe('before [redacted] after');
});

it('replaces an excerpt of a long secret', () => {
  const lines = Array.from({ length: 60 }, (_, i) =>
    Buffer.from(`line ${i} of a key`.repeat(3)).toString('base64'),
  );
  const { redact: hide } = createRedactor(() => [lines.join('\n')]);
  expect(hide(`x ${lines.join(' ')} y`)).toBe('x [redacted] y');
  expect(hide(lines.slice(0, 30).join(' '))).toContain('[redacted]');
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
