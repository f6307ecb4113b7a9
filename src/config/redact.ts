// Keeps secret values out of whatever is shown: messages, results, logs.

/** Shorter values are common words and numbers: replacing them would garble ordinary text. */
const shortest = 6;
const mark = '[redacted]';

export interface Redactor {
  /** Text without any known secret value, also where it is URL-encoded, in base64 or in hexadecimal. */
  redact(text: string): string;
}

/**
 * @param secrets asked at each call, since values may change while the server runs. The patterns are only made
 *   anew when they did.
 */
export function createRedactor(secrets: () => Iterable<string>): Redactor {
  let known = '';
  let forms: string[] = [];
  return {
    redact(text) {
      const values = [...new Set(secrets())].filter((value) => value.length >= shortest).sort();
      const key = JSON.stringify(values);
      if (key !== known) {
        known = key;
        forms = values.flatMap(formsOf).toSorted((a, b) => b.length - a.length);
      }
      return forms.reduce(
        (result, form) => (result.includes(form) ? result.replaceAll(form, () => mark) : result),
        text,
      );
    },
  };
}

/** The value as it may come back: as it is, in a URL, in JSON text, alone in base64 or hexadecimal. */
function formsOf(value: string): string[] {
  const encoded = encodeURIComponent(value);
  const encodedWhole = encodeURI(value);
  const hex = Buffer.from(value).toString('hex');
  const base64 = Buffer.from(value).toString('base64');
  const forms = [
    value,
    encoded,
    lowerTriplets(encoded),
    encoded.replaceAll('%20', '+'),
    // As a URL that was encoded whole has it: slashes and the like stay.
    encodedWhole,
    lowerTriplets(encodedWhole),
    hex,
    hex.toUpperCase(),
    JSON.stringify(value).slice(1, -1),
    base64,
    base64.replace(/=+$/, ''),
    Buffer.from(value).toString('base64url'),
    encodeURIComponent(base64),
  ];
  return [...new Set([...forms, ...innerBase64(value)])].filter((form) => form.length >= shortest);
}

function lowerTriplets(text: string): string {
  return text.replace(/%[0-9A-F]{2}/g, (triplet) => triplet.toLowerCase());
}

/** Base64 of `user:secret` holds the secret at one of three alignments; the characters it shares are left off. */
function innerBase64(value: string): string[] {
  return [1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const whole = Math.floor((bytes.length * 8) / 6);
    const inner = bytes.toString('base64').slice(Math.ceil((before * 8) / 6), whole);
    // Too short a piece would match ordinary text.
    return inner.length >= shortest + 2 ? [inner] : [];
  });
}
