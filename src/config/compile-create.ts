// Compiles `create`: steps, and what may be done when the outcome of one is unknown.

import type { CreateStep } from './adapter.ts';
import type { RawCreateStep, RawFind } from './adapter-schema.ts';
import { captureOf } from './compile-capture.ts';
import type { FileContext } from './compile-context.ts';
import { compileStep, itemsOf, type StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import type { Captured } from './tool-names.ts';
import { parseDuration } from './units.ts';

export function compileCreate(
  raw: RawCreateStep | readonly RawCreateStep[],
  path: Path,
  place: StepPlace,
): { steps: CreateStep[]; captured: Captured } {
  let captured = place.captured;
  const { context } = place;
  const steps = itemsOf(raw, path).map(({ item, at }): CreateStep => {
    const compiled = compileStep(item, at, { ...place, captured });
    const find =
      item.find && compileFind(item.find, item, at, compiled.step.name, { ...place, captured, role: 'find' });
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

function compileFind(
  raw: RawFind,
  create: RawCreateStep,
  path: Path,
  createName: string,
  place: StepPlace,
): CreateStep['find'] {
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
  return { ...step, name: `${createName}.find`, withinMs };
}

function compileIdempotency(raw: RawCreateStep, path: Path, context: FileContext): CreateStep['idempotency'] {
  if (raw.idempotency === undefined) return undefined;
  if (raw.idempotency === true) return { header: undefined, ttlMs: undefined };
  const { header, ttl } = raw.idempotency;
  const wrongName = header === undefined ? undefined : context.format.keyHeaderFault(header);
  if (wrongName !== undefined) context.problem([...path, 'idempotency', 'header'], wrongName);
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
