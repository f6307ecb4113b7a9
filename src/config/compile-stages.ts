// Compiles `status`: the stages of a job, and which captures are known in which of them.

import type { Phase, StatusStage } from './adapter.ts';
import type { RawFetchStep, RawStage, RawTool } from './adapter-schema.ts';
import { captureOf, storedType } from './compile-capture.ts';
import { type FileContext, placeCompiler } from './compile-context.ts';
import { compileState, phasesOf } from './compile-state.ts';
import { compileStep, compileSteps, itemsOf, type StepPlace } from './compile-step.ts';
import { durationBetween } from './compile-timing.ts';
import type { Path } from './driver-format.ts';
import type { Names } from './expression-names.ts';
import { type Captured, fetchedNames, namesWith, response, withCaptures } from './tool-names.ts';

/** The longest as for `timing.timeout`. */
const withinBounds = [1_000, 365 * 86_400_000] as const;

export interface CompiledStage {
  stage: StatusStage;
  phases: Set<Phase>;
  /** Captures known once the stage's reply was read. */
  captured: Captured;
}

export function compileStages(
  raw: RawTool['status'],
  path: Path,
  base: Names,
  created: Captured,
  context: FileContext,
): CompiledStage[] {
  let captured = created;
  const items = itemsOf<RawStage>(raw, path);
  return items.map(({ item, at }, index) => {
    const own = compileStep(item, at, { context, base, captured, role: 'status', lastReply: false });
    const fetch = compileFetches(item.fetch, [...at, 'fetch'], { context, base, captured: own.captured });
    captured = fetch.captured;
    const names = namesWith(base, captured, { response, ...fetchedNames(fetch.fetched) });
    const after = placeCompiler(context, { names });
    const state = compileState(item.state, [...at, 'state'], after, context);
    const message = item.message === undefined ? undefined : after.text([...at, 'message'], item.message);
    const captures = [own.step, ...fetch.steps].flatMap((step) => step.capture);
    const stage = {
      ...own.step,
      fetch: fetch.steps,
      endsByCapture: captures.some(({ optional }) => !optional),
      withinMs:
        item.within === undefined
          ? undefined
          : durationBetween(item.within, withinBounds, [...at, 'within'], context),
      state,
      message,
    };
    if (index + 1 < items.length && !stage.endsByCapture)
      context.problem(at, 'is never left, so the stages after it are never read', {
        hint: 'capture what shows that it is over',
      });
    return { stage, phases: phasesOf(state), captured };
  });
}

function compileFetches(
  raw: RawStage['fetch'],
  path: Path,
  place: Omit<StepPlace, 'role' | 'lastReply'>,
): ReturnType<typeof compileSteps> {
  for (const { item, at } of itemsOf<RawFetchStep>(raw, path))
    if (item.step === undefined)
      place.context.problem(at, 'has no name by which its reply is read', {
        hint: 'add step: NAME, and read it as fetched.NAME',
      });
  return compileSteps(raw, path, { ...place, role: 'fetch', lastReply: true });
}

/** Captures that are sure when the job is seen in `phase`: those up to the first stage that can say so. */
export function knownAt(stages: readonly CompiledStage[], phase: Phase, created: Captured): Captured {
  const first = stages.find(({ phases }) => phases.has(phase)) ?? stages.at(-1);
  return first?.captured ?? created;
}

/** Captures of status steps and questions: known by name from the start, but with no value yet. */
export function laterCaptures(raw: RawTool): Captured {
  let captured: Captured = new Map();
  const add = (capture: { [name: string]: string } | undefined, by: string): void => {
    const names = Object.keys(capture ?? {}).map((key) => ({ ...captureOf(key), type: storedType('dyn') }));
    captured = withCaptures(captured, names, { certain: false, by });
  };
  for (const { item, at } of itemsOf<RawStage>(raw.status, ['status']))
    add(item.capture, `the stage ${item.stage ?? at.join('.')}`);
  for (const item of raw.ask ?? []) add(item.fetch?.capture, `the question ${item.key}`);
  return captured;
}
