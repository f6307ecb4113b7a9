// Compiles steps: request, when, expect and captures, each with the names that may be read there.

import type { Capture, ReplyMeanings, Step } from './adapter.ts';
import type { RawFetchStep } from './adapter-schema.ts';
import { compileCaptures, storedType } from './compile-capture.ts';
import { driverCompiler, type FileContext, type PlaceCompiler, placeCompiler } from './compile-context.ts';
import type { Path, StepRole } from './driver-format.ts';
import type { Expression } from './expression.ts';
import type { Names } from './expression-names.ts';
import {
  type Captured,
  type Fetched,
  fetchedNames,
  namesWith,
  response,
  withCaptures,
} from './tool-names.ts';

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
  /** Replies of earlier steps of the same list. */
  fetched?: Fetched;
}

export interface CompiledStep {
  step: Step;
  /** Captures known after the step. */
  captured: Captured;
  /** Every name the step reads. */
  reads: ReadonlySet<string>;
}

type RawCommon = { [field in 'expect' | 'reason' | keyof ReplyMeanings]?: string | undefined } & {
  capture?: { [name: string]: string } | undefined;
};

type RawFrame = {
  step?: string | undefined;
  stage?: string | undefined;
  when?: string | undefined;
  each?: string | undefined;
  optional?: boolean | undefined;
};

/** Most bytes of any reply. */
const largestReply = 16 * 1024 * 1024;

/** Fields of a step that are not the driver's. */
const commonFields = new Set([
  'step',
  'stage',
  'when',
  'each',
  'optional',
  'after',
  'fetch',
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

export function compileStep(raw: RawCommon & RawFrame, path: Path, place: StepPlace): CompiledStep {
  const { context, lastReply } = place;
  const reply: Names = { response };
  const outer: Names = place.fetched ? { ...place.base, ...fetchedNames(place.fetched) } : place.base;
  const unnumbered = namesWith(outer, place.captured, lastReply ? reply : {});
  const around = place.present ?? new Set<string>();
  const whenCompiler = placeCompiler(context, { names: unnumbered, present: around });
  const when =
    raw.when === undefined
      ? undefined
      : whenCompiler.expression([...path, 'when'], raw.when, { want: 'bool' });
  const present = around.union(when?.tested ?? new Set<string>());

  const eachCompiler = placeCompiler(context, { names: unnumbered, present });
  const each =
    raw.each === undefined
      ? undefined
      : eachCompiler.expression([...path, 'each'], raw.each, { want: 'list' }).expression;
  if (each !== undefined && Object.keys(raw.capture ?? {}).length > 0)
    context.problem([...path, 'capture'], 'a step with each captures nothing: its replies are a list', {
      key: true,
      hint: 'read them as fetched.<step>',
    });
  const base: Names = each === undefined ? outer : { ...outer, item: { kind: 'any' } };
  const before = namesWith(base, place.captured, lastReply ? reply : {});
  const sender = placeCompiler(context, { names: before, present });
  const fields = Object.fromEntries(Object.entries(raw).filter(([field]) => !commonFields.has(field)));
  const after = namesWith(base, place.captured, reply);
  // A driver may read a whole reply, where conditions and captures read small parts.
  const paging = (names: Names): PlaceCompiler =>
    placeCompiler(context, { names: { ...after, ...names }, present, maxBytes: largestReply });
  const driver = driverCompiler(context, path, sender, paging);
  const request = context.format.compileStep(fields, driver, place.role);

  const reader = placeCompiler(context, { names: after, present });
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
  const own = compileCaptures(raw.capture ?? {}, path, name, { ...place, base }, present);
  const captured =
    raw.when === undefined && raw.optional !== true
      ? own.captured
      : withSkipped(place.captured, own.capture, name, raw.optional === true ? undefined : raw.when);
  const reads = new Set(
    [whenCompiler, eachCompiler, sender, reader, own.compiler].flatMap((compiler) => [...compiler.reads]),
  );
  return {
    step: {
      name,
      when: when?.expression,
      each,
      request,
      safe: context.format.isSafe(request),
      optional: raw.optional ?? false,
      expect,
      meanings,
      reason,
      capture: own.capture,
    },
    captured,
    reads,
  };
}

/**
 * Captures of a step that may be left out. `when: "!has(job.x)"` leaves it out only where `x` is there already, so
 * `x` is sure after it.
 */
function withSkipped(
  before: Captured,
  capture: readonly Capture[],
  by: string,
  when: string | undefined,
): Captured {
  const filled = /^\s*!\s*has\(\s*job\.(\w+)\s*\)\s*$/.exec(when ?? '')?.[1];
  return capture.reduce(
    (all, { name, value, optional }) =>
      withCaptures(all, [{ name, type: storedType(value.type) }], {
        certain: name === filled && !optional,
        by,
      }),
    before,
  );
}

/** `create[0]` for a list, `create` for a single step, as people find it in the file. */
function labelOf(path: Path): string {
  const last = path.at(-1);
  return typeof last === 'number' ? `${String(path.at(-2))}[${last}]` : String(last);
}

/** Steps that run one after the other; each may read what the earlier ones captured and their replies. */
export function compileSteps(
  raw: RawFetchStep | readonly RawFetchStep[] | undefined,
  path: Path,
  place: StepPlace,
): { steps: Step[]; captured: Captured; fetched: Fetched } {
  let captured = place.captured;
  const fetched = new Map(place.fetched);
  const steps = itemsOf(raw, path).map(({ item, at }, index) => {
    const { step, ...compiled } = compileStep(item, at, {
      ...place,
      captured,
      fetched,
      lastReply: place.lastReply || (place.role === 'fetch' && index > 0),
    });
    captured = compiled.captured;
    if (fetched.has(step.name))
      place.context.problem([...at, 'step'], `there is another step "${step.name}"`);
    if (readableName.test(step.name)) {
      const certain = step.when === undefined && !step.optional;
      fetched.set(step.name, { certain, list: step.each !== undefined });
    }
    return step;
  });
  return { steps, captured, fetched };
}

/** Names that expressions can read: fetched.<name>. */
const readableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

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
