// Compiles one tool, part by part in the order of a job's life, so that each part knows the captures before it.

import type { JsonObject } from '../exact-json.ts';
import type { Tool } from './adapter.ts';
import type { RawTool } from './adapter-schema.ts';
import { compileCancel } from './compile-cancel.ts';
import type { FileContext } from './compile-context.ts';
import { compileCreate } from './compile-create.ts';
import { compileAsk, compileConfirm } from './compile-questions.ts';
import { compileResult } from './compile-result.ts';
import { type CompiledStage, compileStages, knownAt, laterCaptures } from './compile-stages.ts';
import { compileSteps } from './compile-step.ts';
import { compileTiming, compileWithoutTasks } from './compile-timing.ts';
import type { Path } from './driver-format.ts';
import type { Names, Shape } from './expression-names.ts';
import { longToolName } from './limits.ts';
import { objectSchemaFaults } from './schema-check.ts';
import { namesOfSchema } from './schema-names.ts';
import { type Captured, uncertain, withCaptures } from './tool-names.ts';

/** Names that taskferry's own tools have. */
export const reservedTools = ['task_status', 'task_answer', 'task_cancel'];

/** Parts that belong to a job, which a tool with `call` doesn't have. */
const jobParts = [
  'status',
  'cancel',
  'cleanup',
  'ask',
  'failure',
  'timing',
  'withoutTasks',
  'onDisconnect',
] as const;

export function compileTool(key: string, raw: RawTool, context: FileContext): Tool {
  const path: Path = ['tools', key];
  checkName(key, path, context);
  const input = compileInput(raw.input, [...path, 'input'], context);
  const output = compileOutput(raw.output, [...path, 'output'], context);

  const start: Names = { args: input.args, env: context.env };
  const { questions: confirm, confirm: answers } = compileConfirm(
    raw.confirm ?? [],
    [...path, 'confirm'],
    start,
    context,
  );
  const base: Names = { args: input.args, confirm: answers, env: context.env };

  const common = {
    key,
    title: raw.title,
    description: raw.description,
    // The file was read as JSON values only.
    annotations: raw.annotations as JsonObject | undefined,
    input: input.schema,
    output,
    confirm,
    timing: compileTiming(raw.timing, [...path, 'timing'], context),
    withoutTasks: compileWithoutTasks(raw.withoutTasks, [...path, 'withoutTasks'], context),
    onDisconnect: raw.onDisconnect ?? 'keep',
  } as const;
  checkParts(raw, path, context);
  if (output !== undefined && raw.result?.structured === undefined)
    context.problem([...path, 'output'], 'needs result.structured, which makes what it describes', {
      key: true,
    });
  return raw.call === undefined
    ? { ...common, kind: 'job', ...compileJob(raw, path, base, context) }
    : { ...common, kind: 'call', ...compileCall(raw, path, base, context) };
}

type Parts = Pick<Tool, 'create' | 'status' | 'cancel' | 'cleanup' | 'ask' | 'result' | 'failure'>;

function compileCall(raw: RawTool, path: Path, base: Names, context: FileContext): Parts {
  const place = { context, base, captured: new Map() };
  const { steps, captured, fetched } = compileSteps(raw.call, [...path, 'call'], {
    ...place,
    role: 'call',
    lastReply: false,
  });
  const create = steps.map((step) => ({
    ...step,
    idempotency: undefined,
    find: undefined,
    repeatable: false,
  }));
  return {
    create,
    status: [],
    cancel: [],
    cleanup: [],
    ask: [],
    result: compileResult(raw.result, [...path, 'result'], { ...place, captured, fetched }),
    failure: compileResult(undefined, [...path, 'failure'], { ...place, captured }),
  };
}

function compileJob(raw: RawTool, path: Path, base: Names, context: FileContext): Parts {
  const place = { context, base };
  const { steps: create, captured: created } =
    raw.create === undefined
      ? { steps: [], captured: new Map() }
      : compileCreate(raw.create, [...path, 'create'], {
          ...place,
          captured: laterCaptures(raw),
          role: 'create',
          lastReply: false,
        });
  const stages = compileStages(raw.status, [...path, 'status'], base, created, context);
  checkPhases(raw, stages, path, context);

  const { questions: ask, captured: asked } = compileAsk(raw.ask ?? [], [...path, 'ask'], {
    ...place,
    captured: knownAt(stages, 'input_required', created),
  });
  const withAsked = (captured: Captured): Captured => {
    const names = [...asked].map(([name, { type, by }]) => ({ name, type, by }));
    return names.reduce(
      (all, { name, type, by }) => withCaptures(all, [{ name, type }], { certain: false, by }),
      captured,
    );
  };
  return {
    create,
    status: stages.map(({ stage }) => stage),
    cancel: compileCancel(raw.cancel, [...path, 'cancel'], { ...place, captured: withAsked(created) }),
    cleanup: compileSteps(raw.cleanup, [...path, 'cleanup'], {
      ...place,
      base: { ...base, outcome: { kind: 'any' } },
      captured: uncertain(withAsked(created)),
      role: 'cleanup',
      lastReply: false,
    }).steps,
    ask,
    result: compileResult(raw.result, [...path, 'result'], {
      ...place,
      captured: withAsked(knownAt(stages, 'succeeded', created)),
    }),
    failure: compileResult(raw.failure, [...path, 'failure'], {
      ...place,
      captured: withAsked(knownAt(stages, 'failed', created)),
    }),
  };
}

function compileInput(
  raw: RawTool['input'],
  path: Path,
  context: FileContext,
): { schema: JsonObject; args: Shape } {
  if (raw === undefined) {
    const schema: JsonObject = { type: 'object', additionalProperties: false };
    return {
      schema,
      args: { kind: 'members', members: {}, open: false, declare: 'declare it under input.properties' },
    };
  }
  // The file was read as JSON values only.
  const schema = raw as JsonObject;
  const faults = objectSchemaFaults(schema);
  for (const fault of faults) context.problem([...path, ...fault.path], fault.message, { hint: fault.hint });
  const args: Shape =
    faults.length > 0
      ? { kind: 'any' }
      : namesOfSchema(schema, { path: 'args', declare: 'declare it under input.properties', defaults: true });
  return { schema, args };
}

function compileOutput(raw: RawTool['output'], path: Path, context: FileContext): JsonObject | undefined {
  if (raw === undefined) return undefined;
  const schema = raw as JsonObject;
  for (const fault of objectSchemaFaults(schema))
    context.problem([...path, ...fault.path], fault.message, { hint: fault.hint });
  return schema;
}

function checkName(key: string, path: Path, context: FileContext): void {
  if (reservedTools.includes(key))
    context.problem(path, `the name ${key} is taken by taskferry itself`, { key: true });
  else if (key.length > longToolName)
    context.warning(path, `the name has ${key.length} characters`, {
      key: true,
      hint: `clients put prefixes before it: stay under ${longToolName}`,
    });
}

function checkParts(raw: RawTool, path: Path, context: FileContext): void {
  if (raw.call !== undefined) {
    if (raw.create !== undefined)
      context.problem([...path, 'call'], 'a tool has either create or call', { key: true });
    else
      for (const part of jobParts)
        if (raw[part] !== undefined)
          context.problem([...path, part], `a tool with call has no job, so no ${part}`, { key: true });
    return;
  }
  if (raw.create === undefined) {
    context.problem(path, 'needs create (a job) or call (a plain request)', { key: true });
    return;
  }
  if (raw.status === undefined)
    context.problem(path, 'needs status, which says how the job is followed', { key: true });
}

function checkPhases(raw: RawTool, stages: readonly CompiledStage[], path: Path, context: FileContext): void {
  if (stages.length === 0) return;
  const phases = new Set(stages.flatMap((stage) => [...stage.phases]));
  if (!phases.has('succeeded'))
    context.problem([...path, 'status'], 'no state rule says when the job has succeeded', {
      key: true,
      hint: 'add succeeded under state',
    });
  if (raw.ask !== undefined && raw.ask.length > 0 && !phases.has('input_required'))
    context.problem([...path, 'ask'], 'is never asked: no state rule gives input_required', { key: true });
  if (raw.timing?.onTimeout === 'cancel' && raw.cancel === undefined)
    context.problem([...path, 'timing', 'onTimeout'], 'needs cancel, which says how a job is cancelled');
  if (raw.onDisconnect === 'cancel' && raw.cancel === undefined)
    context.problem([...path, 'onDisconnect'], 'needs cancel, which says how a job is cancelled');
}
