// Compiles `cancel`: steps, and the escalation of a cancel that doesn't take.

import type { CancelStep } from './adapter.ts';
import type { RawCancelStep, RawTool } from './adapter-schema.ts';
import { compileSteps, itemsOf, type StepPlace } from './compile-step.ts';
import { durationBetween } from './compile-timing.ts';
import type { Path } from './driver-format.ts';

const afterBounds = [1_000, 86_400_000] as const;

export function compileCancel(
  raw: RawTool['cancel'],
  path: Path,
  place: Omit<StepPlace, 'role' | 'lastReply'>,
): CancelStep[] {
  const items = itemsOf<RawCancelStep>(raw, path);
  const { steps } = compileSteps(raw, path, { ...place, role: 'cancel', lastReply: true });
  const cancel = steps.map((step, index) => {
    const { item, at } = items[index] ?? {};
    if (item?.after === undefined || at === undefined) return { ...step, afterMs: 0 };
    return { ...step, afterMs: durationBetween(item.after, afterBounds, [...at, 'after'], place.context) };
  });
  if (cancel.length > 0 && cancel.every(({ afterMs }) => afterMs > 0))
    place.context.problem(path, 'has no step that is sent at once', {
      key: true,
      hint: 'leave out after in the first one',
    });
  return cancel;
}
