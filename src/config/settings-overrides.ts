// Settings from outside the file: TASKFERRY_* variables, and the flags that win over them.

import type { Problem } from '../errors.ts';
import { type AdapterEntry, parseUse } from './adapter-entry.ts';
import { suggestion } from './did-you-mean.ts';
import { type LogLevel, logLevels, portField, publicUrlField } from './settings-schema.ts';
import { parseStore, type StoreAddress } from './store-address.ts';

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

/** What is given outside the file; undefined when not. */
export interface Overrides {
  host: string | undefined;
  port: number | undefined;
  publicUrl: string | undefined;
  hosts: string[] | undefined;
  origins: string[] | undefined;
  store: StoreAddress | undefined;
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

export function overrides({ flags, environment, cwd }: SettingsSources, problems: Problem[]): Overrides {
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
      (publicUrlField.safeParse(publicUrl.text).success
        ? publicUrl.text
        : fault(publicUrl.by, 'must be an http or https URL')),
    hosts: list(environment.TASKFERRY_HOSTS),
    origins: list(environment.TASKFERRY_ORIGINS),
    store:
      store &&
      (parseStore(store.text, cwd) ?? fault(store.by, `"${store.text}" is no store`, 'write sqlite:PATH')),
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
  return /^\d+$/.test(text) ? portField.safeParse(Number(text)).data : undefined;
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

export function unknownVariables(environment: { readonly [name: string]: string | undefined }): Problem[] {
  return Object.keys(environment)
    .filter((name) => name.startsWith('TASKFERRY_') && !variableNames.includes(name))
    .flatMap((name) => {
      const near = suggestion(name, variableNames);
      return near === '' ? [] : [outsideProblem(name, `this variable is not known${near}`)];
    });
}
