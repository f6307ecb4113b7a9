// Compiles `cancel`: steps, and the escalation of a cancel that doesn't take.

import type { CancelStep } from './adapter.ts';
import type { RawCancelStep, RawTool } from './adapter-schema.ts';
import { compileSteps, itemsOf, type StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import { parseDuration } from './units.ts';

const longestAfter = 86_400_000;

export function compileCancel(
  raw: RawTool['cancel'],
  path: Path,
  place: Omit<StepPlace, 'role' | 'lastReply'>,
): CancelStep[] {
  const items = itemsOf<RawCancelStep>(raw, path);
  const { steps } = compileSteps(raw, path, { ...place, role: 'cancel', lastReply: true });
  const cancel = steps.map((step, index) => {
    const { item, at } = items[index] ?? {};
    const afterMs = item?.after === undefined ? 0 : (parseDuration(item.after) ?? 0);
    if (at !== undefined && item?.after !== undefined && (afterMs < 1_000 || afterMs > longestAfter))
      place.context.problem([...at, 'after'], 'must be from 1s to 1d');
    return { ...step, afterMs };
  });
  if (cancel.length > 0 && cancel.every(({ afterMs }) => afterMs > 0))
    place.context.problem(path, 'has no step that is sent at once', {
      key: true,
      hint: 'leave out after in the first one',
    });
  return cancel;
}
