// CSV as a list of maps: the first line names the columns (RFC 4180).

import { CsvError, parse } from 'csv-parse/sync';
import type { Json, JsonObject } from '../../exact-json.ts';

/** Bounds the memory that short rows take beside their text. */
const mostRows = 100_000;
const mostColumns = 1_000;

export class NotCsv extends Error {
  override readonly name = 'NotCsv';
}

/**
 * All values are text. Empty lines are left out; of columns with one name the second is called `name_2`, and one
 * without a name goes by its number: `column_3`.
 * @throws NotCsv whose message completes "the reply …".
 */
export function parseCsv(text: string): Json[] {
  const [header = [], ...rows] = records(text);
  if (rows.length > mostRows) throw new NotCsv(`has more than ${mostRows} rows`);
  if (header.length > mostColumns) throw new NotCsv(`has more than ${mostColumns} columns`);
  const names = columnNames(header);
  return rows.map((row): JsonObject => Object.fromEntries(names.map((name, at) => [name, row[at] ?? ''])));
}

function records(text: string): string[][] {
  try {
    return parse(text, { bom: true, skip_empty_lines: true, to: mostRows + 2 });
  } catch (error) {
    if (error instanceof CsvError) throw new NotCsv(`is not CSV (${error.message.slice(0, 200)})`);
    throw error;
  }
}

function columnNames(header: readonly string[]): string[] {
  const taken = new Set<string>();
  return header.map((text, at) => {
    const name = text.trim() === '' ? `column_${at + 1}` : text.trim();
    let unique = name;
    for (let n = 2; taken.has(unique); n++) unique = `${name}_${n}`;
    taken.add(unique);
    return unique;
  });
}
