// Compiles steps: request, when, expect and captures, each with the names that may be read there.

import type { Capture, CreateStep, ReplyMeanings, Step } from './adapter.ts';
import type { RawCreateStep, RawFind, RawStep } from './adapter-schema.ts';
import { driverCompiler, type FileContext, type PlaceCompiler, placeCompiler } from './compile-context.ts';
import type { Path, StepRole } from './driver-format.ts';
import type { Expression } from './expression.ts';
import type { Names } from './expression-names.ts';
import { type Captured, namesWith, response, withCaptures } from './tool-names.ts';
import { parseDuration } from './units.ts';

/** Captures are stored with every task. */
const maxCaptureBytes = 4 * 1024;

export interface StepPlace {
  context: FileContext;
  /** args, confirm, env; plus answer or the last reply where they are at hand. */
  base: Names;
  captured: Captured;
  /** Whether `response` may be read before this step's own reply: it is the last one of the job. */
  lastReply: boolean;
  role: StepRole;
  /** Names that a `when` around the step has tested. */
  present?: ReadonlySet<string>;
  maxBytes?: number | undefined;
}

export interface CompiledStep {
  step: Step;
  /** Captures known after the step. */
  captured: Captured;
  /** Every name the step reads. */
  reads: ReadonlySet<string>;
  /** Compiles further fields that read this step's reply. */
  after: PlaceCompiler;
}

type RawCommon = { [field in 'expect' | 'reason' | keyof ReplyMeanings]?: string | undefined } & {
  capture?: { [name: string]: string } | undefined;
};

/** Fields of a step that are not the driver's. */
const commonFields = new Set([
  'step',
  'stage',
  'when',
  'expect',
  'retry',
  'refused',
  'missing',
  'reason',
  'capture',
  'idempotency',
  'find',
  'repeatable',
  'within',
  'state',
  'message',
]);

export function compileStep(
  raw: RawCommon & { step?: string | undefined; stage?: string | undefined; when?: string | undefined },
  path: Path,
  place: StepPlace,
): CompiledStep {
  const { context, base, lastReply } = place;
  const reply: Names = { response };
  const before = namesWith(base, place.captured, lastReply ? reply : {});
  const around = place.present ?? new Set<string>();
  const whenCompiler = placeCompiler(context, { names: before, present: around });
  const when =
    raw.when === undefined
      ? undefined
      : whenCompiler.expression([...path, 'when'], raw.when, { want: 'bool' });
  const present = around.union(when?.tested ?? new Set<string>());

  const sender = placeCompiler(context, { names: before, present });
  const fields = Object.fromEntries(Object.entries(raw).filter(([field]) => !commonFields.has(field)));
  const request = context.format.compileStep(fields, driverCompiler(context, path, sender), place.role);

  const reader = placeCompiler(context, { names: namesWith(base, place.captured, reply), present });
  const condition = (field: 'expect' | keyof ReplyMeanings): Expression | undefined => {
    const source = raw[field];
    return source === undefined
      ? undefined
      : reader.expression([...path, field], source, { want: 'bool' }).expression;
  };
  const expect = condition('expect');
  if (place.role === 'call' && raw.retry !== undefined)
    context.problem([...path, 'retry'], 'a call is made once: nothing is tried again', { key: true });
  const meanings = {
    retry: condition('retry'),
    refused: condition('refused'),
    missing: condition('missing'),
  };
  const reason =
    raw.reason === undefined ? context.reason : reader.expression([...path, 'reason'], raw.reason).expression;

  const name = raw.step ?? raw.stage ?? labelOf(path);
  const own = compileCaptures(raw.capture ?? {}, path, name, place, present);
  const captured =
    raw.when === undefined
      ? own.captured
      : withCaptures(
          place.captured,
          own.capture.map((item) => ({ name: item.name, type: storedType(item.value.type) })),
          { certain: false, by: name },
        );
  const after = placeCompiler(context, {
    names: namesWith(base, own.captured, reply),
    present,
    maxBytes: place.maxBytes,
  });
  const reads = new Set(
    [whenCompiler, sender, reader, own.compiler].flatMap((compiler) => [...compiler.reads]),
  );
  return {
    step: { name, when: when?.expression, request, expect, meanings, reason, capture: own.capture },
    captured,
    reads,
    after,
  };
}

function compileCaptures(
  raw: { [name: string]: string },
  path: Path,
  by: string,
  place: StepPlace,
  present: ReadonlySet<string>,
): { capture: Capture[]; captured: Captured; compiler: { reads: ReadonlySet<string> } } {
  let captured = place.captured;
  const reads = new Set<string>();
  const capture = Object.entries(raw).map(([key, source]): Capture => {
    const { name, optional } = captureOf(key);
    if (optional && Object.hasOwn(raw, name))
      place.context.problem([...path, 'capture', key], `"${name}" is captured twice`, { key: true });
    const names = namesWith(place.base, captured, { response });
    const compiler = placeCompiler(place.context, { names, present, maxBytes: maxCaptureBytes });
    const { expression } = compiler.expression([...path, 'capture', key], source, { resolveUrl: true });
    for (const read of compiler.reads) reads.add(read);
    captured = withCaptures(captured, [{ name, type: storedType(expression.type) }], {
      certain: !optional,
      by,
    });
    return { name, value: expression, optional };
  });
  return { capture, captured, compiler: { reads } };
}

/** `name?` captures `name`, which may then have no value. */
export function captureOf(key: string): { name: string; optional: boolean } {
  return key.endsWith('?') ? { name: key.slice(0, -1), optional: true } : { name: key, optional: false };
}

/** A capture goes through the store as JSON, where a double and a whole number look alike. */
export function storedType(type: string): string {
  const inner = /^optional<(.*)>$/.exec(type)?.[1] ?? type;
  return inner === 'string' || inner === 'bool' || inner === 'int' ? inner : 'dyn';
}

/** `create[0]` for a list, `create` for a single step, as people find it in the file. */
function labelOf(path: Path): string {
  const last = path.at(-1);
  return typeof last === 'number' ? `${String(path.at(-2))}[${last}]` : String(last);
}

/** Steps that run one after the other; each may read what the earlier ones captured. */
export function compileSteps(
  raw: RawStep | readonly RawStep[] | undefined,
  path: Path,
  place: StepPlace,
): { steps: Step[]; captured: Captured; reads: ReadonlySet<string>; last: PlaceCompiler | undefined } {
  let captured = place.captured;
  let last: PlaceCompiler | undefined;
  const reads = new Set<string>();
  const steps = itemsOf(raw, path).map(({ item, at }, index) => {
    const compiled = compileStep(item, at, {
      ...place,
      captured,
      lastReply: place.lastReply || (place.role === 'fetch' && index > 0),
    });
    captured = compiled.captured;
    last = compiled.after;
    for (const name of compiled.reads) reads.add(name);
    return compiled.step;
  });
  return { steps, captured, reads, last };
}

export function compileCreate(
  raw: RawCreateStep | readonly RawCreateStep[],
  path: Path,
  place: StepPlace,
): { steps: CreateStep[]; captured: Captured } {
  let captured = place.captured;
  const { context } = place;
  const steps = itemsOf(raw, path).map(({ item, at }): CreateStep => {
    const compiled = compileStep(item, at, { ...place, captured });
    const find = item.find && compileFind(item.find, item, at, { ...place, captured, role: 'find' });
    captured = compiled.captured;
    checkKey(item, at, compiled.reads, context);
    return {
      ...compiled.step,
      idempotency: compileIdempotency(item, at, context),
      find,
      repeatable: item.repeatable ?? context.format.isSafe(compiled.step.request),
    };
  });
  return { steps, captured };
}

function compileFind(raw: RawFind, create: RawCreateStep, path: Path, place: StepPlace): CreateStep['find'] {
  const at = [...path, 'find'];
  const { step, reads } = compileStep(raw, at, place);
  if (!reads.has('task.key'))
    place.context.problem(at, 'must look for task.key, which only this job carries', {
      key: true,
      hint: "the newest job may be somebody else's",
    });
  const found = new Set(step.capture.map(({ name }) => name));
  for (const { name, optional } of Object.keys(create.capture ?? {}).map(captureOf))
    if (!optional && !found.has(name))
      place.context.problem(at, `must capture "${name}" too, as the step does`, { key: true });
  const withinMs = raw.within === undefined ? 10_000 : (parseDuration(raw.within) ?? 0);
  if (withinMs > 600_000) place.context.problem([...at, 'within'], 'must be at most 10m');
  return { ...step, name: `${step.name}`, withinMs };
}

function compileIdempotency(raw: RawCreateStep, path: Path, context: FileContext): CreateStep['idempotency'] {
  if (raw.idempotency === undefined) return undefined;
  if (raw.idempotency === true) return { header: undefined, ttlMs: undefined };
  const { header, ttl } = raw.idempotency;
  const ttlMs = ttl === undefined ? undefined : parseDuration(ttl);
  if (ttlMs !== undefined && ttlMs < 1000)
    context.problem([...path, 'idempotency', 'ttl'], 'must be at least 1s');
  return { header, ttlMs };
}

function checkKey(raw: RawCreateStep, path: Path, reads: ReadonlySet<string>, context: FileContext): void {
  if (raw.idempotency === undefined) return;
  const header = raw.idempotency === true ? undefined : raw.idempotency.header;
  if (header === undefined && !reads.has('task.key'))
    context.problem([...path, 'idempotency'], 'the step sends no key that the upstream could recognise', {
      key: true,
      hint: `name a header, or send $${'{{ task.key }}'} in the request`,
    });
}

export function itemsOf<T extends object>(
  raw: T | readonly T[] | undefined,
  path: Path,
): { item: T; at: Path }[] {
  if (raw === undefined) return [];
  if (isList(raw)) return raw.map((item, index) => ({ item, at: [...path, index] }));
  return [{ item: raw, at: path }];
}

function isList<T extends object>(raw: T | readonly T[]): raw is readonly T[] {
  return Array.isArray(raw);
}
