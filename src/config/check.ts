// `taskferry check`: says about each file what is wrong with it, or what it offers.

import { statSync } from 'node:fs';
import { formatProblem, formatWarning, type Problem } from '../errors.ts';
import { isJsonObject } from '../exact-json.ts';
import { adapterSchema } from './adapter-schema.ts';
import type { DriverFormat } from './driver-format.ts';
import { type LoadedText, loadAdapter, unreadable } from './load.ts';
import { readTextFile } from './read-text.ts';
import { adapterFilesIn } from './registry.ts';
import { checkSettingsText } from './settings-file.ts';
import { settingsSchema } from './settings-schema.ts';
import { parseYaml } from './yaml.ts';

export interface CheckReport {
  /** One line each: problems, warnings, for every good file what it holds; last how many of several are good. */
  lines: string[];
  /** 0 when every file is good; 1 when one has a problem. Warnings don't count. */
  exitCode: 0 | 1;
}

/** Checks adapter files, settings files and folders of adapters. Needs no variables and no network. */
export function checkFiles(paths: readonly string[], formats: readonly DriverFormat[]): CheckReport {
  const results = paths.flatMap(expand).map((file) => checkFile(file, formats));
  const lines = results.flatMap((result) => result.lines);
  const bad = results.filter(({ good }) => !good).length;
  if (results.length > 1)
    lines.push(`${results.length} files, ${bad === 0 ? 'all good' : `${bad} with problems`}`);
  return {
    lines,
    exitCode: results.length > 0 && results.every(({ good }) => good) ? 0 : 1,
  };
}

function expand(path: string): string[] {
  const folder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  // A folder without adapters is kept, to be reported as what it is.
  const files = folder ? adapterFilesIn(path) : [];
  return files.length > 0 ? files : [path];
}

function checkFile(file: string, formats: readonly DriverFormat[]): { lines: string[]; good: boolean } {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    return verdict([unreadable(file, error)]);
  }
  if (isSettings(text, file, formats))
    return verdict(checkSettingsText(text, file), [], `${file}: settings, good`);
  const loaded = loadAdapter(text, { file, formats });
  return verdict(loaded.problems, loaded.warnings, summary(file, loaded));
}

/** By the fields that only one of the two formats has; whoever has none of them wrote, or meant, an adapter. */
function isSettings(text: string, file: string, formats: readonly DriverFormat[]): boolean {
  const value = parseYaml(text, file).source?.value ?? null;
  if (!isJsonObject(value)) return false;
  const ofAdapters = new Set(formats.flatMap((format) => Object.keys(adapterSchema(format).shape)));
  const ofSettings = new Set(Object.keys(settingsSchema.shape));
  const fields = Object.keys(value);
  if (fields.some((field) => ofAdapters.has(field) && !ofSettings.has(field))) return false;
  // An adapter has `limits` too, but never without a name, an upstream and tools beside it.
  return fields.some((field) => ofSettings.has(field) && field !== 'version');
}

function verdict(
  problems: readonly Problem[],
  warnings: readonly Problem[] = [],
  good?: string,
): { lines: string[]; good: boolean } {
  const lines = [...problems.map(formatProblem), ...warnings.map(formatWarning)];
  if (problems.length === 0 && good !== undefined) lines.push(good);
  return { lines, good: problems.length === 0 };
}

function summary(file: string, { adapter }: LoadedText): string | undefined {
  if (adapter === undefined) return undefined;
  const tools = adapter.tools.map(({ key }) => key).join(', ');
  return `${file}: ${adapter.name}, ${adapter.tools.length === 1 ? 'tool' : 'tools'} ${tools}`;
}
