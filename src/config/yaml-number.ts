// YAML numbers that would silently become another number or lose their spelling: ids, versions, codes.

import { isScalar, type ParsedNode } from 'yaml';

/** `012`, `0x1F`, `1e5`, `1.10`, `+1`, `.inf`, and whole numbers a double can't hold are refused. */
export function numberProblem(node: ParsedNode): { message: string; hint: string } | undefined {
  if (!isScalar(node) || node.type !== 'PLAIN' || typeof node.value === 'string') return undefined;
  const written = node.source ?? '';
  const value = node.value;
  if (typeof value !== 'number') return undefined;
  const exact = String(value) === written && (!Number.isInteger(value) || Number.isSafeInteger(value));
  if (exact) return undefined;
  const reading = Number.isFinite(value) ? `is read as the number ${value}` : 'is not a JSON number';
  return { message: `${written} ${reading}`, hint: `quote it: "${written}"` };
}
