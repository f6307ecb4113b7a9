// The log: JSON lines on stderr by pino, with a last line of defence against secrets.

import { type LevelWithSilent, type Logger, pino } from 'pino';

export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** @param redact takes what must not be shown, such as known secret values, out of every line. */
export function createLog(level: LevelWithSilent, redact: (text: string) => string): Log {
  return pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => void process.stderr.write(redact(line)) },
  );
}
