// Values of `env` and `secrets`, read by name at each call: NAME, or the file named by NAME_FILE.

import { readFileSync, statSync } from 'node:fs';
import { type Problem, TaskferryError } from '../errors.ts';
import { isJsonObject } from '../exact-json.ts';
import type { Adapter } from './adapter.ts';
import { parseYaml } from './yaml.ts';

export interface VariableOptions {
  /** The process environment, or a part of it. */
  environment: { readonly [name: string]: string | undefined };
  /** Adapter name of a variable to our own name of it: `env:` of an entry in the settings. */
  rename?: { readonly [name: string]: string };
}

export interface VariableValues {
  env: { [name: string]: string };
  secrets: { [name: string]: string };
}

export interface Variables {
  /**
   * All values, read anew: a NAME_FILE that changed on disk is read again.
   * @throws TaskferryError `secret_missing` when one is not set, or a secret is empty; `secret_unreadable` when its
   *   file can't be read.
   */
  values(): VariableValues;
  /** Reads every NAME_FILE again, whatever its time stamp. True when a value changed. */
  refresh(): boolean;
  /**
   * For redaction: the secrets that can be read now, since one that is missing must not expose the others, and the
   * values that they had before, since an upstream may still quote those.
   */
  readableSecrets(): string[];
  /** What is missing now; empty when all can be read. */
  faults(): { name: string; message: string; fix: string }[];
}

/** The variables of one adapter as it is served. Reads nothing yet. */
export function adapterVariables(
  adapter: Pick<Adapter, 'name' | 'env' | 'secrets'>,
  { environment, rename = {} }: VariableOptions,
): Variables {
  const files = new Map<string, { path: string; stamp: string; text: string }>();
  /** Values of secrets by our own name, oldest first. */
  const seen = new Map<string, string[]>();
  const ours = (name: string): string => (Object.hasOwn(rename, name) ? (rename[name] ?? name) : name);

  const read = (name: string, kind: Kind, fresh = false): Reading => {
    const variable = ours(name);
    const reading = readNow(variable, kind, fresh);
    if (kind === 'secret' && reading.text !== undefined) remember(seen, variable, reading.text);
    return reading;
  };
  const readNow = (variable: string, kind: Kind, fresh: boolean): Reading => {
    const own = environment[variable];
    if (own !== undefined) return checked(variable, withoutLineEnd(own), kind, variable);
    const path = environment[`${variable}_FILE`];
    if (path === undefined) return unset(adapter.name, variable, kind);
    if (path === '')
      return {
        fault: { name: variable, message: `${variable}_FILE is empty`, fix: 'give it the path of a file' },
      };
    return readFile(variable, path, kind, files, fresh);
  };
  const text = (name: string, kind: Kind, fallback?: string): string => {
    const reading = read(name, kind);
    if (reading.text !== undefined) return reading.text;
    if (fallback !== undefined && reading.unset) return fallback;
    const { message, fix } = reading.fault;
    throw new TaskferryError(reading.unreadable ? 'secret_unreadable' : 'secret_missing', message, { fix });
  };

  return {
    values: () => ({
      env: Object.fromEntries(
        adapter.env.map(({ name, default: fallback }) => [name, text(name, 'env', fallback)]),
      ),
      secrets: Object.fromEntries(adapter.secrets.map((name) => [name, text(name, 'secret')])),
    }),
    refresh() {
      const before = new Map([...files].map(([name, { text: value }]) => [name, value]));
      for (const { name } of adapter.env) read(name, 'env', true);
      for (const name of adapter.secrets) read(name, 'secret', true);
      return [...files].some(([name, { text: value }]) => before.get(name) !== value);
    },
    readableSecrets() {
      for (const name of adapter.secrets) read(name, 'secret');
      return [...seen.values()].flat();
    },
    faults() {
      const readings = [
        ...adapter.env.map(({ name, default: fallback }) => ({ reading: read(name, 'env'), fallback })),
        ...adapter.secrets.map((name) => ({ reading: read(name, 'secret'), fallback: undefined })),
      ];
      return readings.flatMap(({ reading, fallback }) =>
        reading.fault === undefined || (reading.unset && fallback !== undefined) ? [] : [reading.fault],
      );
    },
  };
}

/** One variable by our own name, read like a secret: NAME, or the file named by NAME_FILE. */
export function namedVariable(
  name: string,
  environment: { readonly [name: string]: string | undefined },
): { text?: string; fault?: { message: string; fix: string } } {
  const variables = adapterVariables({ name: 'the settings', env: [], secrets: [name] }, { environment });
  const [fault] = variables.faults();
  if (fault !== undefined) return { fault };
  return { text: variables.values().secrets[name] ?? '' };
}

/** The faults of {@link Variables} as problems at the lines where the adapter lists the names. */
export function variableProblems(
  adapter: Adapter,
  variables: Variables,
  rename: { readonly [name: string]: string } = {},
): Problem[] {
  return variables.faults().map(({ name, message, fix }) => {
    const listed = Object.keys(rename).find((key) => rename[key] === name) ?? name;
    const { line, column, path } = placeOf(adapter, listed);
    return { file: adapter.file, line, column, path, message, hint: fix };
  });
}

/** Most values of one secret that stay unshown after it was rotated. */
const mostRemembered = 20;

function remember(seen: Map<string, string[]>, variable: string, text: string): void {
  const values = seen.get(variable) ?? [];
  if (values.at(-1) === text) return;
  seen.set(variable, [...values.filter((value) => value !== text), text].slice(-mostRemembered));
}

type Kind = 'env' | 'secret';
type Fault = { name: string; message: string; fix: string };
type Reading =
  | { text: string; fault?: undefined; unset?: undefined; unreadable?: undefined }
  | { text?: undefined; fault: Fault; unset?: boolean; unreadable?: boolean };

function unset(adapter: string, variable: string, kind: Kind): Reading {
  const what = kind === 'secret' ? 'secret' : 'variable';
  return {
    unset: true,
    fault: {
      name: variable,
      message: `the ${what} ${variable} of ${adapter} is not set`,
      fix: `set ${variable}, or ${variable}_FILE to the path of a file that holds it`,
    },
  };
}

function readFile(
  variable: string,
  path: string,
  kind: Kind,
  files: Map<string, { path: string; stamp: string; text: string }>,
  fresh: boolean,
): Reading {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    const stamp = `${mtimeMs}:${size}:${ino}`;
    const known = files.get(variable);
    const current = known !== undefined && !fresh && known.path === path && known.stamp === stamp;
    const text = current ? known.text : withoutLineEnd(readFileSync(path, 'utf8').replace(/^\ufeff/, ''));
    if (!current) files.set(variable, { path, stamp, text });
    return checked(variable, text, kind, `the file of ${variable}_FILE`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
    return {
      unreadable: true,
      fault: {
        name: variable,
        message: `${variable}_FILE names ${path}, which can't be read (${code})`,
        fix: 'check the path and its permissions',
      },
    };
  }
}

/** A secret that is empty or blank would send calls out with an empty credential. */
function checked(name: string, text: string, kind: Kind, where: string): Reading {
  if (kind === 'env' || text.trim() !== '') return { text };
  return { fault: { name, message: `the secret ${name} is empty`, fix: `put its value into ${where}` } };
}

/** Editors and `echo` end a file with a line end that is no part of the value; exactly one is removed. */
function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, '');
}

/** Where the adapter lists a name; its text is read again, as this is only asked when something is wrong. */
function placeOf(adapter: Adapter, name: string): { line: number; column: number; path: string } {
  const list = adapter.secrets.includes(name) ? 'secrets' : 'env';
  const { source } = parseYaml(adapter.text, adapter.file);
  const listed = isJsonObject(source?.value) ? source.value[list] : undefined;
  const item = Array.isArray(listed) ? listed.indexOf(name) : name;
  const place = source?.problem([list, item], '', { key: true });
  return { line: place?.line ?? 1, column: place?.column ?? 1, path: list };
}
