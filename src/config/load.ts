// Loads one adapter: text to compiled adapter, with every problem of the file at its place.

import { createHash } from 'node:crypto';
import { dirname, resolve } from 'node:path';
import { byPlace, type Problem } from '../errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../exact-json.ts';
import type { Adapter, CompiledUpstream, EnvVariable } from './adapter.ts';
import { adapterSchema, knownVersions, type RawAdapter } from './adapter-schema.ts';
import { driverCompiler, type FileContext, fileContext, placeCompiler } from './compile-context.ts';
import { compileLimits } from './compile-timing.ts';
import { compileTool } from './compile-tool.ts';
import { suggestion } from './did-you-mean.ts';
import type { DriverFormat, Path } from './driver-format.ts';
import { readsRoot, type Shape } from './expression-names.ts';
import { readTextFile, UnusableFile } from './read-text.ts';
import { plainProblem, type ShapeProblem, shapeProblems } from './shape-problems.ts';
import { response, variables } from './tool-names.ts';
import { parseYaml, type YamlSource } from './yaml.ts';

export interface LoadOptions {
  /** Name for messages, and the folder that relative paths in the file start from. */
  file: string;
  formats: readonly DriverFormat[];
}

export interface LoadedText {
  /** Only when there are no problems. */
  adapter?: Adapter;
  /** In file order. */
  problems: Problem[];
  /** Things that work, but probably not as meant. */
  warnings: Problem[];
  /** Where each tool stands, for messages about several files. */
  toolLines: ReadonlyMap<string, { line: number; column: number }>;
}

/** Loads an adapter from its text alone; never throws for what the text says. */
export function loadAdapter(text: string, options: LoadOptions): LoadedText {
  const { source, problems } = parseYaml(text, options.file);
  if (source === undefined) return { problems, warnings: [], toolLines: new Map() };
  const found = { problems: [...problems], warnings: [] as Problem[] };
  const adapter = compile(text, source, options, found);
  const loaded: LoadedText = {
    problems: inFileOrder(found.problems),
    warnings: inFileOrder(found.warnings),
    toolLines: toolLines(source),
  };
  if (adapter !== undefined && found.problems.length === 0) loaded.adapter = adapter;
  return loaded;
}

/** Reads and loads an adapter file. A file that can't be read is a problem without a position. */
export function loadAdapterFile(file: string, formats: readonly DriverFormat[]): LoadedText {
  let text: string;
  try {
    text = readTextFile(file);
  } catch (error) {
    return { problems: [unreadable(file, error)], warnings: [], toolLines: new Map() };
  }
  return loadAdapter(text, { file, formats });
}

export function unreadable(file: string, error: unknown): Problem {
  if (error instanceof UnusableFile) return { file, line: 0, column: 0, path: '', message: error.message };
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const words: { [code: string]: string } = {
    ENOENT: 'the file does not exist',
    EISDIR: 'is a folder, not a file',
    EACCES: 'the file may not be read',
  };
  const message = words[String(code)] ?? `the file can't be read: ${String(code ?? error)}`;
  return { file, line: 0, column: 0, path: '', message };
}

type Found = { problems: Problem[]; warnings: Problem[] };

function compile(text: string, source: YamlSource, options: LoadOptions, found: Found): Adapter | undefined {
  const raw = source.value;
  if (!isJsonObject(raw)) {
    found.problems.push(source.problem([], raw === null ? 'the file is empty' : 'the file must hold a map'));
    return undefined;
  }
  const format = checkVersion(raw, source, found) && findFormat(raw, source, options.formats, found);
  if (!format) return undefined;

  const { adapter, loose } = checkShape(raw, source, format, found);
  const env = envVariables(adapter.env);
  const secrets = adapter.secrets ?? [];
  const anything: Shape = { kind: 'any' };
  const names = env.map(({ name }) => name);
  const shapes = {
    env: loose.has('env') ? anything : variables(names, 'env'),
    secrets: loose.has('secrets') ? anything : variables(secrets, 'secrets'),
  };
  const context = fileContext(source, format, shapes, dirname(resolve(options.file)), found);
  checkVariables(adapter, env, context);
  context.reason = compileReason(adapter.reason, context);
  const upstream = adapter.upstream && compileUpstream(adapter.upstream, format, context);
  context.credentials = format.credentials?.(upstream?.config) ?? {};
  const limits = compileLimits(adapter.limits, context);
  if (isJsonObject(raw.tools ?? null) && Object.keys(raw.tools ?? {}).length === 0)
    context.problem(['tools'], 'there are no tools', { key: true });
  const tools = Object.entries(adapter.tools ?? {}).map(([key, tool]) => compileTool(key, tool, context));
  if (found.problems.length > 0 || adapter.name === undefined || upstream === undefined) return undefined;
  warnUnused(env, secrets, context);
  return {
    name: adapter.name,
    description: adapter.description,
    file: options.file,
    text,
    digest: createHash('sha256').update(text).digest('hex'),
    env,
    secrets,
    upstream,
    limits,
    tools,
  };
}

function compileReason(raw: string | undefined, context: FileContext): FileContext['reason'] {
  if (raw === undefined) return undefined;
  const compiler = placeCompiler(context, { names: { response, env: context.env } });
  return compiler.expression(['reason'], raw).expression;
}

function compileUpstream(
  { driver, ...fields }: RawAdapter['upstream'],
  format: DriverFormat,
  context: FileContext,
): CompiledUpstream {
  const compiler = placeCompiler(context, { names: { env: context.env } });
  return { driver, config: format.compileUpstream(fields, driverCompiler(context, ['upstream'], compiler)) };
}

function checkVersion(raw: { [field: string]: Json }, source: YamlSource, found: Found): boolean {
  if (typeof raw.version === 'number' && knownVersions.includes(raw.version)) return true;
  const quoted = knownVersions.find((version) => String(version) === raw.version);
  const known =
    quoted === undefined ? `known: ${knownVersions.join(', ')}` : `write ${quoted} without quotes`;
  found.problems.push(
    raw.version === undefined
      ? source.problem(['version'], 'is missing', {
          hint: `write version: ${knownVersions.at(-1)} as the first line`,
        })
      : source.problem(['version'], `${JSON.stringify(raw.version)} is no known version of the format`, {
          hint: known,
        }),
  );
  return false;
}

function findFormat(
  raw: { [field: string]: Json },
  source: YamlSource,
  formats: readonly DriverFormat[],
  found: Found,
): DriverFormat | undefined {
  const names = formats.map((format) => format.name);
  const upstream = raw.upstream;
  const driver = upstream !== undefined && isJsonObject(upstream) ? upstream.driver : undefined;
  const format = formats.find(({ name }) => name === driver);
  if (format !== undefined) return format;
  const hint = `drivers: ${names.join(', ')}`;
  if (upstream === undefined) found.problems.push(source.problem(['upstream'], 'is missing', { hint }));
  else if (!isJsonObject(upstream))
    found.problems.push(source.problem(['upstream'], 'must be a map', { hint }));
  else if (driver === undefined)
    found.problems.push(source.problem(['upstream', 'driver'], 'is missing', { hint }));
  else {
    const near = typeof driver === 'string' ? suggestion(driver, names) : '';
    const message = `there is no driver ${JSON.stringify(driver)}${near}`;
    found.problems.push(source.problem(['upstream', 'driver'], message, { hint }));
  }
  return undefined;
}

interface Sound {
  /** The parts whose shape is right. */
  adapter: Partial<RawAdapter>;
  /** Lists of variables whose content is not known for sure. */
  loose: ReadonlySet<string>;
}

/**
 * Checks the shape. Where it is wrong, the sound rest is handed on, so that all problems of the file are told at
 * once; parts that depend on what is wrong are left out, as what could be said about them would only confuse.
 */
function checkShape(raw: JsonObject, source: YamlSource, format: DriverFormat, found: Found): Sound {
  const schema = adapterSchema(format);
  const first = schema.safeParse(raw);
  if (first.success) return { adapter: first.data, loose: new Set() };
  const said = new Set(found.problems.map(placeOf));
  const problems = shapeProblems(first.error.issues, source).filter((problem) => !said.has(placeOf(problem)));
  found.problems.push(...problems.map(plainProblem));

  const rest = structuredClone(raw);
  for (const problem of shapeProblems(first.error.issues, source)) drop(rest, problem);
  const second = schema.partial().safeParse(rest);
  // A misspelt top-level key may be the list that is missing.
  const misspelt = problems.some(({ at, unknownKey }) => unknownKey && at.length === 1);
  const loose = ['env', 'secrets'].filter((list) =>
    raw[list] === undefined ? misspelt : !Object.hasOwn(rest, list),
  );
  // `partial` types every field as possibly absent, which is what it is here.
  return { adapter: second.success ? (second.data as Partial<RawAdapter>) : {}, loose: new Set(loose) };
}

/** Removes the smallest part that can be done without: an unknown key, a tool, or a top-level field. */
function drop(raw: JsonObject, { at, unknownKey, strayKey }: ShapeProblem): void {
  const [root, name] = at;
  const inTool = root === 'tools' && typeof name === 'string' && isJsonObject(raw.tools ?? null);
  if (inTool && !strayKey) deleteAt(raw, ['tools', name]);
  else deleteAt(raw, unknownKey || root === undefined ? at : [root]);
}

function deleteAt(raw: JsonObject, path: Path): void {
  let holder: Json | undefined = raw;
  for (const part of path.slice(0, -1)) {
    if (Array.isArray(holder)) holder = holder[Number(part)];
    else holder = holder !== undefined && isJsonObject(holder) ? holder[String(part)] : undefined;
  }
  if (holder !== undefined && isJsonObject(holder)) delete holder[String(path.at(-1))];
}

function placeOf({ line, column }: Problem): string {
  return `${line}:${column}`;
}

function envVariables(raw: RawAdapter['env']): EnvVariable[] {
  if (raw === undefined) return [];
  if (Array.isArray(raw)) return raw.map((name) => ({ name, default: undefined }));
  return Object.entries(raw).map(([name, options]) => ({ name, default: options?.default }));
}

function checkVariables(
  adapter: Partial<RawAdapter>,
  env: readonly EnvVariable[],
  context: FileContext,
): void {
  const seen = new Set<string>();
  const check = (name: string, path: (string | number)[]): void => {
    if (seen.has(name)) context.problem(path, `${name} is listed twice`);
    seen.add(name);
  };
  if (Array.isArray(adapter.env)) for (const [index, { name }] of env.entries()) check(name, ['env', index]);
  else for (const { name } of env) check(name, ['env', name]);
  for (const [index, name] of (adapter.secrets ?? []).entries()) check(name, ['secrets', index]);
}

function warnUnused(env: readonly EnvVariable[], secrets: readonly string[], context: FileContext): void {
  const names = [
    ...env.map(({ name }) => ['env', name] as const),
    ...secrets.map((name) => ['secrets', name] as const),
  ];
  for (const [root, shape] of Object.entries(context.credentials)) {
    const some = shape.kind === 'members' && Object.keys(shape.members).length > 0;
    if (!some || readsRoot(context.reads, root)) continue;
    const hint = `send it as ${root}.<name>, for example in upstream.auth, or remove it`;
    context.warning(['upstream', root], 'is never read', { key: true, hint });
  }
  for (const [list, name] of names) {
    if (context.reads.has(list) || context.reads.has(`${list}.${name}`)) continue;
    context.warning([list], `${name} is never read`, {
      key: true,
      hint: `read it as ${list}.${name}, or remove it`,
    });
  }
}

function toolLines(source: YamlSource): Map<string, { line: number; column: number }> {
  const { value } = source;
  const tools = isJsonObject(value) && isJsonObject(value.tools ?? null) ? value.tools : {};
  return new Map(
    Object.keys(isJsonObject(tools) ? tools : {}).map((key) => {
      const { line, column } = source.problem(['tools', key], '', { key: true });
      return [key, { line, column }];
    }),
  );
}

function inFileOrder(problems: readonly Problem[]): Problem[] {
  return problems.toSorted(byPlace);
}
