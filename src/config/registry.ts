// From the settings' list of adapters to what is served: files found and loaded, names unique, variables there.

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { formatProblem, type Problem } from '../errors.ts';
import type { Adapter, Tool } from './adapter.ts';
import type { AdapterEntry } from './adapter-entry.ts';
import { reservedTools } from './compile-tool.ts';
import { suggestion } from './did-you-mean.ts';
import type { DriverFormat } from './driver-format.ts';
import { longestToolName, longToolName } from './limits.ts';
import { loadAdapterFile, unreadable } from './load.ts';
import { adapterVariables, type Variables, variableProblems } from './variables.ts';

export interface ServedAdapter {
  /** The name it is served under; stored tasks, budgets and metrics go by it. */
  name: string;
  adapter: Adapter;
  /** Adapter's name of a variable to ours. */
  env: { readonly [name: string]: string };
  /** The tools that are offered. Tasks of others are still followed. */
  tools: readonly NamedTool[];
  variables: Variables;
}

export interface NamedTool {
  /** `prefix` and the tool's key. */
  name: string;
  tool: Tool;
}

export interface Registry {
  /** In the order of the settings. */
  adapters: readonly ServedAdapter[];
}

export interface RegistryOptions {
  formats: readonly DriverFormat[];
  environment: { readonly [name: string]: string | undefined };
  /** Folder of the shipped adapters. Default: `adapters/` of this package. */
  shipped?: string;
}

export interface LoadedRegistry {
  /** Only when there are no problems. */
  registry?: Registry;
  problems: Problem[];
  warnings: Problem[];
}

/** `adapters/` beside `src/` or `dist/`. */
const packageAdapters = resolve(import.meta.dirname, '../../adapters');

/** Loads everything that is listed; all problems of all files at once. Never throws for their content. */
export function loadRegistry(entries: readonly AdapterEntry[], options: RegistryOptions): LoadedRegistry {
  const problems: Problem[] = [];
  const warnings: Problem[] = [];
  const served = entries.flatMap((entry) => {
    const files = filesOf(entry, options.shipped ?? packageAdapters, problems);
    if (files.length > 1 && entry.as !== undefined) {
      problems.push(
        entry.problem(
          ['as'],
          `${entry.written} holds ${files.length} adapters, which can't all have one name`,
        ),
      );
      return [];
    }
    return files.flatMap((file) => serve(file, entry, options, problems, warnings));
  });
  if (problems.length === 0 && served.length === 0)
    warnings.push({
      file: 'adapters',
      line: 0,
      column: 0,
      path: '',
      message: 'nothing is served: no adapter is listed',
      hint: 'name one with --adapter or in the settings file',
    });
  checkNames(served, problems);
  return problems.length > 0
    ? { problems: distinct(problems), warnings: distinct(warnings) }
    : {
        registry: { adapters: served.map(({ lines: _lines, entry: _entry, ...adapter }) => adapter) },
        problems,
        warnings: distinct(warnings),
      };
}

/** A file may be served under several names; what is wrong with it is told once. */
function distinct(problems: readonly Problem[]): Problem[] {
  return [...new Map(problems.map((problem) => [formatProblem(problem), problem])).values()];
}

/** Adapter files of a folder, by name: every .yaml or .yml but recorded replies (`*.replay.yaml`). */
export function adapterFilesIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => /\.ya?ml$/.test(name) && !/\.replay\.ya?ml$/.test(name))
    .sort()
    .map((name) => join(folder, name));
}

interface Loaded extends ServedAdapter {
  entry: AdapterEntry;
  lines: ReadonlyMap<string, { line: number; column: number }>;
}

function filesOf(entry: AdapterEntry, shipped: string, problems: Problem[]): string[] {
  const fail = (message: string, hint?: string): string[] => {
    problems.push(entry.problem(['use'], message, hint));
    return [];
  };
  if (entry.use.kind === 'shipped') {
    const file = join(shipped, `${entry.use.name}.yaml`);
    if (existsSync(file)) return [file];
    const known = existsSync(shipped)
      ? adapterFilesIn(shipped).map((path) => path.replace(/^.*[\\/]|\.ya?ml$/g, ''))
      : [];
    const near = suggestion(entry.use.name, known);
    return fail(
      `there is no shipped adapter "${entry.use.name}"${near}`,
      `shipped: ${known.join(', ') || 'none'}; a file of your own is written as a path: ./${entry.use.name}.yaml`,
    );
  }
  try {
    if (!statSync(entry.use.path).isDirectory()) return [entry.use.path];
    const files = adapterFilesIn(entry.use.path);
    return files.length > 0 ? files : fail(`the folder ${entry.use.path} holds no adapter`);
  } catch (error) {
    return fail(`${entry.use.path}: ${unreadable('', error).message}`);
  }
}

function serve(
  file: string,
  entry: AdapterEntry,
  { formats, environment }: RegistryOptions,
  problems: Problem[],
  warnings: Problem[],
): Loaded[] {
  const loaded = loadAdapterFile(file, formats);
  problems.push(...loaded.problems);
  warnings.push(...loaded.warnings);
  const { adapter } = loaded;
  if (adapter === undefined) return [];

  const known = [...adapter.env.map(({ name }) => name), ...adapter.secrets];
  for (const name of Object.keys(entry.env))
    if (!known.includes(name))
      problems.push(
        entry.problem(['env', name], `${adapter.name} has no variable ${name}${suggestion(name, known)}`),
      );
  const keys = adapter.tools.map(({ key }) => key);
  for (const [index, key] of (entry.tools ?? []).entries())
    if (!keys.includes(key))
      problems.push(
        entry.problem(['tools', index], `${adapter.name} has no tool "${key}"${suggestion(key, keys)}`),
      );

  const variables = adapterVariables(adapter, { environment, rename: entry.env });
  problems.push(...variableProblems(adapter, variables, entry.env));
  const tools = adapter.tools
    .filter(({ key }) => entry.tools === undefined || entry.tools.includes(key))
    .map((tool): NamedTool => ({ name: `${entry.prefix}${tool.key}`, tool }));
  for (const { name } of tools) checkFullName(name, entry, problems, warnings);
  const name = entry.as ?? adapter.name;
  return [{ name, adapter, env: entry.env, tools, variables, entry, lines: loaded.toolLines }];
}

function checkFullName(name: string, entry: AdapterEntry, problems: Problem[], warnings: Problem[]): void {
  if (name.length > longestToolName)
    problems.push(
      entry.problem(['prefix'], `with its prefix, ${name} has more than ${longestToolName} characters`),
    );
  else if (reservedTools.includes(name))
    problems.push(
      entry.problem(['prefix'], `with its prefix, the name ${name} is taken by taskferry itself`),
    );
  else if (name.length > longToolName && entry.prefix !== '')
    warnings.push(
      entry.problem(
        ['prefix'],
        `with its prefix, ${name} has ${name.length} characters`,
        `stay under ${longToolName}`,
      ),
    );
}

function checkNames(served: readonly Loaded[], problems: Problem[]): void {
  const names = new Map<string, Loaded>();
  const tools = new Map<string, string>();
  for (const one of served) {
    const twin = names.get(one.name);
    if (twin === undefined) names.set(one.name, one);
    else {
      const message = `${one.adapter.file} and ${twin.adapter.file} are both served as "${one.name}"`;
      problems.push(one.entry.problem([], message, 'give one of them another name: {use: …, as: …}'));
    }
    for (const { name, tool } of one.tools) {
      const at = one.lines.get(tool.key);
      const place = `${one.adapter.file}:${at?.line ?? 1}`;
      const before = tools.get(name);
      if (before === undefined) tools.set(name, place);
      else
        problems.push({
          file: one.adapter.file,
          line: at?.line ?? 1,
          column: at?.column ?? 1,
          path: `tools.${tool.key}`,
          message: `there are two tools of the name ${name}: here and at ${before}`,
          hint: 'give one of the adapters a prefix in the settings',
        });
    }
  }
}
