// Building blocks of the file schemas: strict maps that know their keys, one-or-many, durations, sizes.

import { z } from 'zod';
import { durationPattern, sizePattern } from './units.ts';

/** Marks the message of an unknown key; what follows are the keys that are known there. */
const knownKeysMark = 'known keys:';

/**
 * A map that refuses keys it doesn't know; the refusal carries the known ones, for a suggestion. `noMap`: what is
 * said of anything but a map.
 */
export function strict<S extends z.ZodRawShape>(shape: S, noMap?: string): z.ZodObject<S, z.core.$strict> {
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code === 'invalid_type') return noMap;
      return issue.code === 'unrecognized_keys'
        ? `${knownKeysMark}${Object.keys(shape).join(',')}`
        : undefined;
    },
  });
}

/** The keys known where an unknown one was found. */
export function knownKeys(message: string): string[] {
  return message.startsWith(knownKeysMark) ? message.slice(knownKeysMark.length).split(',') : [];
}

/** One item, or a list of at least one. */
export function oneOrMany<T extends z.ZodType>(item: T): z.ZodUnion<[T, z.ZodArray<T>]> {
  return z.union([item, z.array(item).min(1, 'the list is empty')]);
}

export function duration(description: string): z.ZodString {
  return z
    .string({ error: 'must be a duration such as 30s (units: ms, s, m, h, d)' })
    .regex(durationPattern, 'must be a duration such as 30s (units: ms, s, m, h, d)')
    .describe(description);
}

export function size(description: string): z.ZodString {
  return z
    .string({ error: 'must be a size such as 256KiB (units: KiB, MiB)' })
    .regex(sizePattern, 'must be a size such as 256KiB (units: KiB, MiB)')
    .describe(description);
}

/** Bare CEL. */
export function cel(description: string): z.ZodString {
  return z.string().describe(description);
}

/** Text with `${{ }}` holes. */
export function template(description: string): z.ZodString {
  return z.string().describe(description);
}

/** Any JSON value; strings in it may hold holes. */
export function structure(description: string): z.ZodUnknown {
  return z.unknown().describe(description);
}

export function jsonSchema(description: string): z.ZodRecord<z.ZodString, z.ZodUnknown> {
  return z.record(z.string(), z.unknown()).describe(description);
}

/** A variable's name as the environment spells it. */
export const variableName = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,127}$/, 'must be a name in capitals such as API_TOKEN');
