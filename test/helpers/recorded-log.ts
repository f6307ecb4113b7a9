// A log whose lines a test can read.

import type { Log } from '../../src/observability/log.ts';

export interface Line {
  level: 'debug' | 'info' | 'warn' | 'error';
  message: string;
  [field: string]: unknown;
}

export function recordedLog(): { log: Log; lines: Line[] } {
  const lines: Line[] = [];
  const write = (level: Line['level']) => (fields: object, message: string) =>
    void lines.push({ ...fields, level, message });
  const log = { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  // pino's methods take their arguments in more ways than taskferry uses.
  return { log: log as unknown as Log, lines };
}
