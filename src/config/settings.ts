// The server's settings: defaults, the settings file, TASKFERRY_* variables and flags, in that order.

import { readFileSync } from 'node:fs';
import { dirname, isAbsolute, resolve } from 'node:path';
import type { Problem } from '../errors.ts';
import { suggestion } from './did-you-mean.ts';
import type { Path } from './driver-format.ts';
import { unreadable } from './load.ts';
import { isObject } from './schema-names.ts';
import { type RawAdapterEntry, type RawSettings, settingsSchema } from './settings-schema.ts';
import { plainProblem, shapeProblems } from './shape-problems.ts';
import { parseSize } from './units.ts';
import { namedVariable } from './variables.ts';
import { parseYaml, type YamlSource } from './yaml.ts';

export interface Settings {
  /** Absolute path of the settings file, if any. */
  file: string | undefined;
  listen: {
    /** Default 127.0.0.1. */
    host: string;
    /** Default 3737; 0 takes a free one. */
    port: number;
    publicUrl: string | undefined;
    hosts: readonly string[];
    origins: readonly string[];
  };
  /** `sqlite:` and an absolute path. Default `taskferry.db` in the working folder. */
  store: string;
  adapters: readonly AdapterEntry[];
  auth: { kind: 'none' };
  limits: {
    /** Most bytes of one MCP request. Default 4 MiB. */
    requestBytes: number;
  };
  requestState: {
    /** Values of the signing keys, newest first; empty: one is made and kept in the store. */
    keys: readonly string[];
  };
  log: { level: LogLevel };
}

export type LogLevel = NonNullable<NonNullable<RawSettings['log']>['level']>;

/** One line of `adapters:`, not yet resolved to files. */
export interface AdapterEntry {
  /** Name of a shipped adapter, or an absolute path. */
  use: { kind: 'shipped'; name: string } | { kind: 'path'; path: string };
  /** As it was written, for messages. */
  written: string;
  as: string | undefined;
  prefix: string;
  /** Adapter's name of a variable to ours. */
  env: { readonly [name: string]: string };
  tools: readonly string[] | undefined;
  /** A problem at the place of the entry. */
  problem(path: Path, message: string, hint?: string): Problem;
}

/** Command line flags of `serve`; undefined when not given. */
export interface SettingsFlags {
  config?: string | undefined;
  adapters?: readonly string[] | undefined;
  store?: string | undefined;
  host?: string | undefined;
  port?: string | undefined;
}

export interface SettingsSources {
  flags: SettingsFlags;
  environment: { readonly [name: string]: string | undefined };
  /** Working folder, from which paths in flags and variables start. */
  cwd: string;
}

export interface LoadedSettings {
  /** Only when there are no problems. */
  settings?: Settings;
  problems: Problem[];
  warnings: Problem[];
}

/** Reads and merges all sources. Lists are replaced by a later source, not joined. Never throws for their content. */
export function loadSettings({ flags, environment, cwd }: SettingsSources): LoadedSettings {
  const problems: Problem[] = [];
  const named = flags.config ?? environment.TASKFERRY_CONFIG;
  const file = named === undefined ? undefined : resolve(cwd, named);
  const fromFile = file === undefined ? undefined : readSettingsFile(file, problems);
  const raw = fromFile?.raw;
  const from = overrides({ flags, environment, cwd }, problems);

  const keys = (raw?.requestState?.keys ?? []).flatMap((name, index) => {
    const key = namedVariable(name, environment);
    const message =
      key.fault?.message ??
      ((key.text?.length ?? 0) < 32 ? `the key ${name} is shorter than 32 characters` : undefined);
    if (message === undefined) return [key.text ?? ''];
    const hint = key.fault?.fix ?? 'make one with: openssl rand -base64 32';
    if (fromFile) problems.push(fromFile.source.problem(['requestState', 'keys', index], message, { hint }));
    return [];
  });
  const fileEntries = fromFile ? entriesOfFile(fromFile) : [];
  const settings: Settings = {
    file,
    listen: {
      host: from.host ?? raw?.listen?.host ?? '127.0.0.1',
      port: from.port ?? raw?.listen?.port ?? 3737,
      publicUrl: from.publicUrl ?? raw?.listen?.publicUrl,
      hosts: from.hosts ?? raw?.listen?.hosts ?? [],
      origins: from.origins ?? raw?.listen?.origins ?? [],
    },
    store:
      from.store ??
      (raw?.store && file ? storeAt(raw.store, dirname(file)) : storeAt('sqlite:./taskferry.db', cwd)),
    adapters: from.adapters ?? fileEntries,
    auth: { kind: 'none' },
    limits: { requestBytes: requestBytes(fromFile, problems) },
    requestState: { keys },
    log: { level: from.logLevel ?? raw?.log?.level ?? 'info' },
  };
  const warnings = unknownVariables(environment);
  return problems.length > 0 ? { problems, warnings } : { settings, problems, warnings };
}

/** The problems of a settings file alone, without variables and flags: for `check`. */
export function checkSettingsText(text: string, file: string): Problem[] {
  const problems: Problem[] = [];
  const parsed = parseSettings(text, file, problems);
  if (parsed) requestBytes(parsed, problems);
  return problems;
}

interface FileSettings {
  raw: RawSettings;
  source: YamlSource;
  folder: string;
}

function readSettingsFile(file: string, problems: Problem[]): FileSettings | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
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
  if (!isObject(source.value)) {
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
  problems.push(...faults.toSorted((a, b) => a.line - b.line || a.column - b.column));
  return undefined;
}

function requestBytes(from: FileSettings | undefined, problems: Problem[]): number {
  const text = from?.raw.limits?.requestBytes;
  const bytes = text === undefined ? 4 * 1024 * 1024 : (parseSize(text) ?? 0);
  if (from && (bytes < 1024 || bytes > 64 * 1024 * 1024))
    problems.push(from.source.problem(['limits', 'requestBytes'], 'must be between 1KiB and 64MiB'));
  return bytes;
}

function entriesOfFile({ raw, source, folder }: FileSettings): AdapterEntry[] {
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

/** A bare word is a shipped adapter; anything with a slash or an ending is a path. */
function parseUse(use: string, folder: string): AdapterEntry['use'] {
  if (/^[A-Za-z][A-Za-z0-9_-]*$/.test(use)) return { kind: 'shipped', name: use };
  return { kind: 'path', path: isAbsolute(use) ? use : resolve(folder, use) };
}

function storeAt(store: string, folder: string): string {
  return `sqlite:${resolve(folder, store.slice('sqlite:'.length))}`;
}

// ---- variables and flags -----------------------------------------------------------------------

interface Overrides {
  host: string | undefined;
  port: number | undefined;
  publicUrl: string | undefined;
  hosts: string[] | undefined;
  origins: string[] | undefined;
  store: string | undefined;
  adapters: AdapterEntry[] | undefined;
  logLevel: LogLevel | undefined;
}

const variableNames = [
  'TASKFERRY_CONFIG',
  'TASKFERRY_HOST',
  'TASKFERRY_PORT',
  'TASKFERRY_PUBLIC_URL',
  'TASKFERRY_HOSTS',
  'TASKFERRY_ORIGINS',
  'TASKFERRY_STORE',
  'TASKFERRY_ADAPTERS',
  'TASKFERRY_LOG_LEVEL',
];
const logLevels = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;

function overrides({ flags, environment, cwd }: SettingsSources, problems: Problem[]): Overrides {
  /** The flag if given, else the variable; with the name to blame. An empty variable counts as not set. */
  const given = (flag: string | undefined, flagName: string, variable: string) => {
    if (flag !== undefined) return { text: flag, by: flagName };
    const text = environment[variable];
    return text === undefined || text === '' ? undefined : { text, by: variable };
  };
  const list = (text: string | undefined): string[] | undefined =>
    text === undefined || text === ''
      ? undefined
      : text
          .split(',')
          .map((item) => item.trim())
          .filter((item) => item !== '');
  const fault = (by: string, message: string, hint?: string): undefined => {
    problems.push(outsideProblem(by, message, hint));
    return undefined;
  };

  const port = given(flags.port, '--port', 'TASKFERRY_PORT');
  const store = given(flags.store, '--store', 'TASKFERRY_STORE');
  const publicUrl = given(undefined, '', 'TASKFERRY_PUBLIC_URL');
  const level = given(undefined, '', 'TASKFERRY_LOG_LEVEL');
  const adapters = flags.adapters?.length
    ? { items: flags.adapters, by: '--adapter' }
    : { items: list(environment.TASKFERRY_ADAPTERS), by: 'TASKFERRY_ADAPTERS' };
  return {
    host: given(flags.host, '--host', 'TASKFERRY_HOST')?.text,
    port:
      port &&
      (parsePort(port.text) ?? fault(port.by, `"${port.text}" is no port`, 'a whole number from 0 to 65535')),
    publicUrl:
      publicUrl &&
      (/^https?:$/.test(URL.parse(publicUrl.text)?.protocol ?? '')
        ? publicUrl.text
        : fault(publicUrl.by, 'must be an http or https URL')),
    hosts: list(environment.TASKFERRY_HOSTS),
    origins: list(environment.TASKFERRY_ORIGINS),
    store:
      store &&
      (/^sqlite:.+/s.test(store.text)
        ? storeAt(store.text, cwd)
        : fault(store.by, `"${store.text}" is no store`, 'write sqlite:PATH')),
    adapters: adapters.items?.map((item) => outsideEntry(item, adapters.by, cwd)),
    logLevel:
      level &&
      (logLevels.find((name) => name === level.text) ??
        fault(
          level.by,
          `"${level.text}" is no log level${suggestion(level.text, logLevels)}`,
          logLevels.join(', '),
        )),
  };
}

function parsePort(text: string): number | undefined {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  return port <= 65535 ? port : undefined;
}

function outsideEntry(use: string, by: string, cwd: string): AdapterEntry {
  return {
    use: parseUse(use, cwd),
    written: use,
    as: undefined,
    prefix: '',
    env: {},
    tools: undefined,
    problem: (_path, message, hint) => outsideProblem(by, message, hint),
  };
}

/** A fault of a flag or variable, which has no line. */
function outsideProblem(by: string, message: string, hint?: string): Problem {
  const problem: Problem = { file: by, line: 0, column: 0, path: '', message };
  if (hint !== undefined) problem.hint = hint;
  return problem;
}

function unknownVariables(environment: { readonly [name: string]: string | undefined }): Problem[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('TASKFERRY_') && !variableNames.includes(name))
    .flatMap((name) => {
      const near = suggestion(name, variableNames);
      return near === '' ? [] : [outsideProblem(name, `this variable is not known${near}`)];
    });
}
