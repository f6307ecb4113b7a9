// The settings file: read, checked, its entries of `adapters:` with their places.

import { dirname } from 'node:path';
import { byPlace, type Problem } from '../errors.ts';
import { isJsonObject } from '../exact-json.ts';
import { type AdapterEntry, parseUse } from './adapter-entry.ts';
import { unreadable } from './load.ts';
import { readTextFile } from './read-text.ts';
import { type RawAdapterEntry, type RawSettings, settingsSchema } from './settings-schema.ts';
import { plainProblem, shapeProblems } from './shape-problems.ts';
import { parseSize } from './units.ts';
import { parseYaml, type YamlSource } from './yaml.ts';

/** The problems of a settings file alone, without variables and flags: for `check`. */
export function checkSettingsText(text: string, file: string): Problem[] {
  const problems: Problem[] = [];
  const parsed = parseSettings(text, file, problems);
  if (parsed) requestBytes(parsed, problems);
  return problems;
}

export interface FileSettings {
  raw: RawSettings;
  source: YamlSource;
  folder: string;
}

export function readSettingsFile(file: string, problems: Problem[]): FileSettings | undefined {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    problems.push(unreadable(file, error));
    return undefined;
  }
  return parseSettings(text, file, problems);
}

function parseSettings(text: string, file: string, problems: Problem[]): FileSettings | undefined {
  const parsed = parseYaml(text, file);
  problems.push(...parsed.problems);
  const { source } = parsed;
  if (source === undefined || parsed.problems.length > 0) return undefined;
  if (!isJsonObject(source.value)) {
    problems.push(
      source.problem([], source.value === null ? 'the file is empty' : 'the file must hold a map'),
    );
    return undefined;
  }
  if (source.value.version !== 1 && source.value.version !== undefined) {
    problems.push(source.problem(['version'], 'is no known version of the settings', { hint: 'known: 1' }));
    return undefined;
  }
  const checked = settingsSchema.safeParse(source.value);
  if (checked.success) return { raw: checked.data, source, folder: dirname(file) };
  const faults = shapeProblems(checked.error.issues, source).map(plainProblem);
  problems.push(...faults.toSorted(byPlace));
  return undefined;
}

export function requestBytes(from: FileSettings | undefined, problems: Problem[]): number {
  const text = from?.raw.limits?.requestBytes;
  const bytes = text === undefined ? 4 * 1024 * 1024 : (parseSize(text) ?? 0);
  if (from && (bytes < 1024 || bytes > 64 * 1024 * 1024))
    problems.push(from.source.problem(['limits', 'requestBytes'], 'must be between 1KiB and 64MiB'));
  return bytes;
}

export function entriesOfFile({ raw, source, folder }: FileSettings): AdapterEntry[] {
  return (raw.adapters ?? []).map((entry, index) => {
    const item: RawAdapterEntry = typeof entry === 'string' ? { use: entry } : entry;
    return {
      use: parseUse(item.use, folder),
      written: item.use,
      as: item.as,
      prefix: item.prefix ?? '',
      env: item.env ?? {},
      tools: item.tools,
      problem: (path, message, hint) => source.problem(['adapters', index, ...path], message, { hint }),
    };
  });
}
