// The server's settings: defaults, the settings file, TASKFERRY_* variables and flags, in that order.

import { resolve } from 'node:path';
import type { Problem } from '../errors.ts';
import type { AdapterEntry } from './adapter-entry.ts';
import { entriesOfFile, readSettingsFile, requestBytes } from './settings-file.ts';
import { overrides, type SettingsSources, unknownVariables } from './settings-overrides.ts';
import type { LogLevel } from './settings-schema.ts';
import { parseStore, type StoreAddress } from './store-address.ts';
import { namedVariable } from './variables.ts';

export interface Settings {
  listen: {
    /** Default 127.0.0.1. */
    host: string;
    /** Default 3737; 0 takes a free one. */
    port: number;
    publicUrl: string | undefined;
    hosts: readonly string[];
    origins: readonly string[];
  };
  /** Default `taskferry.db` in the working folder. */
  store: StoreAddress;
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
  const storeOfFile = raw?.store && fromFile ? parseStore(raw.store, fromFile.folder) : undefined;
  const settings: Settings = {
    listen: {
      host: from.host ?? raw?.listen?.host ?? '127.0.0.1',
      port: from.port ?? raw?.listen?.port ?? 3737,
      publicUrl: from.publicUrl ?? raw?.listen?.publicUrl,
      hosts: from.hosts ?? raw?.listen?.hosts ?? [],
      origins: from.origins ?? raw?.listen?.origins ?? [],
    },
    store: from.store ?? storeOfFile ?? { kind: 'sqlite', path: resolve(cwd, 'taskferry.db') },
    adapters: from.adapters ?? fileEntries,
    auth: { kind: 'none' },
    limits: { requestBytes: requestBytes(fromFile, problems) },
    requestState: { keys },
    log: { level: from.logLevel ?? raw?.log?.level ?? 'info' },
  };
  const warnings = unknownVariables(environment);
  return problems.length > 0 ? { problems, warnings } : { settings, problems, warnings };
}
