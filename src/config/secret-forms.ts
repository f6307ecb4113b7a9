// The spellings in which a secret value may come back from an upstream, as something that text is searched for.

/** Shorter values, and shorter spellings of values, are common words and numbers. */
const shortest = 6;

/** Finds one spelling of a secret value in text. */
export interface SecretSearch {
  /** A part that all that `pattern` finds has: text without it needs no closer look. */
  anchor: string;
  /** Global. */
  pattern(): RegExp;
}

/**
 * Finds the value with each character plain or escaped as URLs, JSON and HTML do it, with white space of any kind,
 * and in base64 and hexadecimal. Nothing for a value under six characters.
 */
export function searchesFor(value: string): SecretSearch[] {
  return chunks(value.trim()).flatMap((chunk) => [
    searchOf(longestWord(chunk), () => escapedPattern(chunk)),
    ...encodedForms(chunk).map((forms) =>
      searchOf(longestWord(forms.at(-1) ?? ''), () => forms.map(literal).join('|')),
    ),
  ]);
}

/** A long value is searched for in parts: an excerpt of a key must not be shown either. */
const chunkLength = 512;

function chunks(text: string): string[] {
  const count = Math.max(1, Math.floor(text.length / chunkLength));
  const length = Math.ceil(text.length / count);
  return Array.from({ length: count }, (_, i) => text.slice(i * length, (i + 1) * length).trim()).filter(
    (chunk) => chunk.length >= shortest,
  );
}

function searchOf(anchor: string, source: () => string): SecretSearch {
  let pattern: RegExp | undefined;
  return {
    anchor,
    // Made when it is first needed, which is hardly ever.
    pattern: () => (pattern ??= new RegExp(source(), 'g')),
  };
}

/** The longest run of letters and digits, which no escaping changes. */
function longestWord(text: string): string {
  return text.match(/[a-zA-Z0-9]+/g)?.reduce((a, b) => (b.length > a.length ? b : a)) ?? '';
}

/** Most white-space characters in a row, each maybe escaped, that stand for a gap in a secret. */
const longestGap = 64;

function escapedPattern(text: string): string {
  return text
    .split(/(\s+)/)
    .map((piece, index) => {
      if (index % 2 === 0) return [...piece].map(spellings).join('');
      // Line ends are lost where text is put into a header or one line; other gaps stay.
      const least = /[\r\n]/.test(piece) ? 0 : 1;
      return `(?:\\s|\\+|${escapes([' ', '\t', '\n', '\r', '\f', '\v'])}){${least},${longestGap}}`;
    })
    .join('');
}

function spellings(char: string): string {
  if (/[a-zA-Z0-9]/.test(char)) return char;
  const plain = literal(char);
  // Backslashes double with every level of quoting.
  if (char === '\\') return `(?:${plain}{1,16}|${escapes([char])})`;
  return `(?:${'"\'/'.includes(char) ? `\\\\{0,8}${plain}` : plain}|${escapes([char])})`;
}

const jsonLetters: { readonly [char: string]: string } = {
  '\b': 'b',
  '\t': 't',
  '\n': 'n',
  '\f': 'f',
  '\r': 'r',
};
const htmlNames: { readonly [char: string]: string } = {
  '&': 'amp',
  '<': 'lt',
  '>': 'gt',
  '"': 'quot',
  "'": 'apos',
  '\u00a0': 'nbsp',
};

/** Alternatives for any of `chars`, none of which is the character itself. */
function escapes(chars: readonly string[]): string {
  return chars
    .flatMap((char) => {
      const point = char.codePointAt(0) ?? 0;
      const units = Array.from({ length: char.length }, (_, i) => hex(char.charCodeAt(i), 4));
      const bytes = [...Buffer.from(char)].map((byte) => hex(byte, 2));
      const found = [
        units.map((unit) => `\\\\{1,8}u${unit}`).join(''),
        // As a URL within a URL has it, the percent sign is escaped itself.
        bytes.map((byte) => `%(?:25)*${byte}`).join(''),
        `&(?:amp;)*#(?:0*${point}|[xX]0*${hex(point, 1)});`,
      ];
      const letter = jsonLetters[char];
      if (letter !== undefined) found.push(`\\\\{1,8}${letter}`);
      const name = htmlNames[char];
      if (name !== undefined) found.push(`&(?:amp;)*${name};`);
      return found;
    })
    .join('|');
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/** Hexadecimal digits in either case. */
function hex(value: number, length: number): string {
  return value
    .toString(16)
    .padStart(length, '0')
    .replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`);
}

/** Each list holds the spellings of one kind, longer ones first; the last one's letters and digits are in them all. */
function encodedForms(value: string): string[][] {
  const bytes = Buffer.from(value);
  const hexadecimal = bytes.toString('hex');
  const base64 = [0, 1, 2].flatMap((before) => {
    const inner = innerBase64(bytes, before);
    const whole = before === 0 ? [bytes.toString('base64'), bytes.toString('base64url')] : [];
    // Too short a piece would match ordinary text.
    const pieces = inner.length >= shortest + 2 ? [inner, urlSafe(inner)] : [];
    const forms = [...whole.map(encodeURIComponent), ...whole, ...pieces.map(encodeURIComponent), ...pieces];
    return forms.length === 0 ? [] : [[...new Set(forms)].sort((a, b) => b.length - a.length)];
  });
  return [[hexadecimal], [hexadecimal.toUpperCase()], ...base64];
}

/**
 * Base64 of a longer text, such as `user:secret` or `secret:`, holds the secret at one of three alignments; the
 * characters that it shares with what stands before and after are left off.
 */
function innerBase64(bytes: Buffer, before: number): string {
  const padded = Buffer.concat([Buffer.alloc(before), bytes]);
  const whole = Math.floor((padded.length * 8) / 6);
  return padded.toString('base64').slice(Math.ceil((before * 8) / 6), whole);
}

function urlSafe(base64: string): string {
  return base64.replaceAll('+', '-').replaceAll('/', '_');
}
