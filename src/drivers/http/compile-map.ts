// Compiling a map of the format that may as well be one hole.

import type { Compiler, Path } from '../../config/driver-format.ts';
import { hasHole, type ValueTemplate } from '../../config/template.ts';
import type { Json } from '../../exact-json.ts';

/** A map with holes, or one hole that gives a map. */
export function compileMap(raw: unknown, path: Path, compiler: Compiler): ValueTemplate | undefined {
  if (raw === undefined) return undefined;
  const oneHole = typeof raw === 'string' && hasHole(raw);
  const map = typeof raw === 'object' && raw !== null && !Array.isArray(raw);
  if (!oneHole && !map) compiler.problem(path, 'must be a map, or a hole that gives a map');
  return compiler.value(path, raw as Json);
}
