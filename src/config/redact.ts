// Keeps secret values out of whatever is shown: messages, results, logs.

import { type SecretSearch, searchesFor } from './secret-forms.ts';

const mark = '[redacted]';
const repeated = /\[redacted\](?:\[redacted\])+/g;

export interface Redactor {
  /**
   * Text without any known secret value, also where it is escaped as URLs, JSON or HTML escape text, has other white
   * space, or is in base64 or hexadecimal. Values under six characters are left alone.
   */
  redact(text: string): string;
}

/**
 * @param secrets asked at each call, since values may change while the server runs. The searches are only made
 *   anew when they did.
 */
export function createRedactor(secrets: () => Iterable<string>): Redactor {
  let known = '';
  let searches: SecretSearch[] = [];
  return {
    redact(text) {
      const values = [...new Set(secrets())].sort();
      const key = JSON.stringify(values);
      if (key !== known) {
        known = key;
        // Longer ones first: a secret may be a part of another.
        searches = values.toSorted((a, b) => b.length - a.length).flatMap(searchesFor);
      }
      const hidden = searches.reduce(without, text);
      // A long value is found in parts.
      return hidden === text ? text : hidden.replace(repeated, mark);
    },
  };
}

function without(text: string, { anchor, pattern }: SecretSearch): string {
  return text.includes(anchor) ? text.replaceAll(pattern(), () => mark) : text;
}
