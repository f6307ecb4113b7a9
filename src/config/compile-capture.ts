// Compiles the captures of a step: expressions in file order, of which later ones may read earlier ones.

import type { Capture } from './adapter.ts';
import { placeCompiler } from './compile-context.ts';
import type { StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import { type Captured, namesWith, response, withCaptures } from './tool-names.ts';

/** Captures are stored with every task. */
const maxCaptureBytes = 4 * 1024;

export function compileCaptures(
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
