// What a benchmark prints: a table for people, and one line of JSON for programs.

import { cpus, loadavg } from 'node:os';

export type Row = { [column: string]: string | number };

/** Facts about the machine that every JSON line carries. */
export interface Machine {
  node: string;
  cpus: number;
  /** Processes that wanted a CPU in the last minute before the run; above 0.5 the numbers are not worth much. */
  load: number;
  /** Median milliseconds of a 4 KiB append with fdatasync. */
  fsyncMs: number;
}

export function machine(fsyncMs: number): Machine {
  return {
    node: process.version,
    cpus: cpus().length,
    load: rounded(loadavg()[0] ?? 0),
    fsyncMs: rounded(fsyncMs),
  };
}

/** Numbers are printed with three significant digits. */
export function print(block: string, title: string, rows: readonly Row[], facts: Machine): void {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => columns.map((column) => text(row[column])));
  const widths = columns.map((column, i) =>
    Math.max(column.length, ...cells.map((line) => (line[i] ?? '').length)),
  );
  const line = (values: readonly string[]): string =>
    values
      .map((value, i) => (i === 0 ? value.padEnd(widths[i] ?? 0) : value.padStart(widths[i] ?? 0)))
      .join('  ');
  console.log(`\n${title}`);
  console.log(line(columns));
  for (const cell of cells) console.log(line(cell));
  const data = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === 'number' ? rounded(value) : value]),
    ),
  );
  console.log(JSON.stringify({ block, ...facts, rows: data }));
}

function text(value: string | number | undefined): string {
  return typeof value === 'number' ? String(rounded(value)) : (value ?? '');
}

function rounded(value: number): number {
  if (Math.abs(value) >= 1_000) return Math.round(value);
  return Number(value.toPrecision(3));
}
