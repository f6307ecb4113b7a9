// The shape of an adapter file, version 1: every field with its unit and default. Driver fields are added to it.

import { z } from 'zod';
import { phases } from './adapter.ts';
import {
  cel,
  duration,
  jsonSchema,
  oneOrMany,
  size,
  strict,
  structure,
  template,
  variableName,
} from './shape.ts';

/** Versions of the format that this taskferry reads. */
export const knownVersions = [1];

/** Names of captures: they are read as `job.<name>`. */
export const identifier = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'must be a name of letters, digits and _, starting with a letter');

/** A capture that may have no value ends with a question mark. */
export const captureName = z
  .string()
  .regex(
    /^[A-Za-z_][A-Za-z0-9_]{0,63}\??$/,
    'must be a name of letters, digits and _, starting with a letter; with ? at its end the value may be missing',
  );

/** Names of tools, without a prefix. */
const toolKey = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_]{0,63}$/,
    'must be a name of letters, digits and _, starting with a letter, of at most 64 characters',
  );

export const adapterName = z
  .string()
  .regex(
    /^[A-Za-z][A-Za-z0-9_-]{0,63}$/,
    'must be a name of letters, digits, _ and -, starting with a letter, of at most 64 characters',
  );

export interface DriverShape {
  name: string;
  upstream: z.ZodRawShape;
  step: z.ZodRawShape;
}

const schemas = new WeakMap<DriverShape, ReturnType<typeof buildSchema>>();

/** The file's schema for one driver. */
export function adapterSchema(driver: DriverShape): ReturnType<typeof buildSchema> {
  const known = schemas.get(driver) ?? buildSchema(driver);
  schemas.set(driver, known);
  return known;
}

function buildSchema(driver: DriverShape) {
  // The driver's fields are read by the driver alone, so their types don't matter here.
  const upstreamFields = driver.upstream as Record<never, never>;
  const stepFields = driver.step as Record<never, never>;

  const common = {
    expect: cel(
      'CEL, true when the reply is as hoped. Default: any 2xx. Reads response and what the request may read, but no secrets.',
    ).optional(),
    capture: z
      .record(captureName, z.string())
      .describe(
        'Values to remember from the reply, as job.<name>; bare CEL. At most 4 KiB. Written name?, the value may be missing.',
      )
      .optional(),
    retry: cel(
      'CEL, true when the reply says nothing for now and the request is to be made again.',
    ).optional(),
    reason: cel(
      'CEL that gives what an unwanted reply says, for people. Default: the reason of the adapter, else the start of the body.',
    ).optional(),
  };
  const missing = cel('CEL, true when the reply says that there is no such job, as a 404 does.').optional();
  const named = {
    step: z.string().min(1).max(64).describe('Name for logs and messages. Default: its position.').optional(),
    when: cel('CEL; the step is left out when it is false. Default: always.').optional(),
  };
  const each = cel(
    'CEL that gives a list of at most 100: the request is made once for each, which is read as item.',
  ).optional();
  const step = strict({ ...named, each, ...stepFields, ...common });
  const cancelStep = strict({
    ...named,
    after: duration(
      'Sent when the job still goes on that long after the cancel was first sent. Default: at once.',
    ).optional(),
    each,
    ...stepFields,
    ...common,
  });
  const fetchStep = strict({
    ...named,
    each,
    ...stepFields,
    ...common,
    optional: z
      .boolean()
      .describe(
        'The reply can be done without: when it cannot be had, the step counts as left out. Default false.',
      )
      .optional(),
  });
  const plainStep = strict({ ...stepFields, ...common });

  const find = strict({
    ...stepFields,
    ...common,
    missing,
    within: duration(
      'How long after the request a job may take to show up in the look-up. Default 10s.',
    ).optional(),
  });
  const createStep = strict({
    ...named,
    ...stepFields,
    ...common,
    refused: cel(
      'CEL, true when the reply is a certain no, whatever its status: nothing was created.',
    ).optional(),
    idempotency: z
      .union([
        z.literal(true),
        strict({
          header: z
            .string()
            .describe(
              'Header in which taskferry sends task.key. Without it the step must send task.key itself.',
            )
            .optional(),
          ttl: duration('How long the upstream remembers the key. Default: for good.').optional(),
        }),
      ])
      .describe('The upstream recognises a repeated request by task.key, so it may be sent again.')
      .optional(),
    find: find
      .describe('Looks the job up by task.key when it is unknown whether the request created one.')
      .optional(),
    repeatable: z
      .boolean()
      .describe('Repeating the request does no harm. Default: true for GET and HEAD.')
      .optional(),
  });

  const rule = z
    .union([z.array(z.union([z.string(), z.number(), z.boolean()])).min(1), z.string(), z.boolean()], {
      error: 'must be a list of status words, a CEL condition, or true',
    })
    .describe('A list: `of` is one of these words. A text: a CEL condition. true: always.');
  const stateMap = strict({
    of: cel("CEL that gives the upstream's status word, for the lists.").optional(),
    working: rule.optional(),
    input_required: rule.optional(),
    succeeded: rule.optional(),
    failed: rule.optional(),
    cancelled: rule.optional(),
    errored: rule.optional(),
  });
  const stateList = z
    .array(
      strict({
        phase: z.enum(phases).describe('Where the job stands then.'),
        when: z
          .union([z.string(), z.boolean()], { error: 'must be a CEL condition or true' })
          .describe('CEL condition, or true for always.'),
      }),
    )
    .min(1);
  const stage = strict({
    stage: z
      .string()
      .min(1)
      .max(64)
      .describe('Name for logs and messages. Default: its position.')
      .optional(),
    when: cel('CEL; the stage is left out when it is false. Default: always.').optional(),
    ...stepFields,
    ...common,
    missing,
    within: duration(
      'A job that stays in the stage for longer is lost. Default: it may stay until the time-out.',
    ).optional(),
    fetch: oneOrMany(fetchStep)
      .describe('Further requests of the same look, read as fetched.<step> in state and message.')
      .optional(),
    state: z
      .union([stateMap, stateList])
      .describe(
        'What the reply means. Map form: tried in the order cancelled, errored, failed, succeeded, input_required, working. List form: first match wins. No match: working, and reported.',
      ),
    message: template(
      "The task's status message. Left out when it can't be made. At most 500 characters.",
    ).optional(),
  });

  const confirm = strict({
    key: identifier.describe('The answer is read as confirm.<key>.'),
    when: cel('CEL over args; the question is left out when it is false.').optional(),
    message: template('The question.'),
    schema: jsonSchema('The answer: a flat JSON Schema of string, number, integer, boolean and enum fields.'),
  });
  const answerStep = strict({ ...named, ...stepFields, ...common });
  const ask = strict({
    key: identifier.describe('Stem of the question keys: approve gives approve-1, approve-2 …'),
    fetch: plainStep.describe('Read before the question is made; its captures join job.').optional(),
    each: cel('CEL that gives a list: one question for each of its first 20, read as item.').optional(),
    id: cel(
      'CEL over item: text or a number that tells this item from the others. Needed with each.',
    ).optional(),
    when: cel('CEL; the question is only asked while it is true.').optional(),
    message: template('The question.'),
    schema: jsonSchema(
      'The answer: a flat JSON Schema of string, number, integer, boolean and enum fields. Its values may hold holes.',
    ),
    onAccept: oneOrMany(answerStep).describe(
      'Sends the accepted answer, read as answer.<field>: every step whose when holds.',
    ),
    onDecline: oneOrMany(answerStep)
      .describe('Sent when the question is declined. Default: nothing is sent.')
      .optional(),
    onCancel: oneOrMany(answerStep)
      .describe('Sent when the question is dismissed. Default: nothing is sent.')
      .optional(),
  });

  const link = strict({
    uri: template('Where it is.'),
    name: template('What it is called.'),
    mimeType: z.string().describe('Media type.').optional(),
    description: template('What it is.').optional(),
  });
  const mapping = strict({
    fetch: oneOrMany(fetchStep)
      .describe(
        'Requests made once the job has ended; response is then the last reply, and fetched.<step> each of them.',
      )
      .optional(),
    structured: structure('structuredContent of the result; a structure with holes.').optional(),
    text: template('Text of the result. Default: the structured content as JSON.').optional(),
    links: z.array(link).describe('Resource links of the result.').optional(),
    maxBytes: size(
      'Most bytes of a fetched reply and of the result. Default 256KiB, at most 16MiB.',
    ).optional(),
  });

  const timing = strict({
    every: duration('First and shortest poll interval. Default 5s, at least 100ms.').optional(),
    max: duration('Longest poll interval. Default 1m.').optional(),
    timeout: duration('A task that runs longer ends as errored. Default 24h.').optional(),
    keep: duration('How long a task is kept beyond its timeout. Default 24h.').optional(),
    settle: duration(
      'How long a call waits for a quick job before it answers with a task. Default 0s, at most 5s.',
    ).optional(),
    onTimeout: z
      .enum(['leave', 'cancel'])
      .describe('What a time-out does to the job upstream. Default leave.')
      .optional(),
  });

  const tool = strict({
    title: z.string().describe('Name for people.').optional(),
    description: z.string().min(1).describe('What the tool does, for the model.'),
    annotations: strict({
      title: z.string().describe('Name for people.').optional(),
      readOnlyHint: z.boolean().describe('The tool changes nothing.').optional(),
      destructiveHint: z.boolean().describe('What it changes may be lost.').optional(),
      idempotentHint: z
        .boolean()
        .describe('Calling it again in the same way changes nothing more.')
        .optional(),
      openWorldHint: z.boolean().describe('It deals with things outside of its own system.').optional(),
    })
      .describe('Hints of the MCP specification.')
      .optional(),
    input: jsonSchema(
      'Arguments: JSON Schema 2020-12 of type object. Default: no arguments. Defaults of its properties are filled in.',
    ).optional(),
    output: jsonSchema('JSON Schema of structuredContent, of type object.').optional(),
    confirm: z.array(confirm).describe('Questions put before anything is created, in order.').optional(),
    create: oneOrMany(createStep).describe('Requests that create the job. Needs status.').optional(),
    call: oneOrMany(step)
      .describe('Requests of a plain tool that answers at once, without a job.')
      .optional(),
    status: oneOrMany(stage)
      .describe(
        'How the job is followed. Stages run in order; one is left when all its captures have a value.',
      )
      .optional(),
    cancel: oneOrMany(cancelStep)
      .describe('Every step whose when holds is sent. Default: the job cannot be cancelled.')
      .optional(),
    cleanup: oneOrMany(fetchStep)
      .describe(
        'Requests made after the end, whatever it was (read as outcome), to remove what the job has left. Never changes the outcome.',
      )
      .optional(),
    ask: z.array(ask).describe('Questions put while the state is input_required.').optional(),
    result: mapping.describe('The result of a job that succeeded, or of call.').optional(),
    failure: mapping.describe('The result of a job that failed.').optional(),
    timing: timing.describe('How often the job is looked at, and for how long.').optional(),
    withoutTasks: z
      .union(
        [
          z.enum(['wait', 'reject']),
          strict({ wait: duration('How long such a call waits. Default 45s, at most 10m.') }),
        ],
        { error: 'must be wait, reject or {wait: 30s}' },
      )
      .describe('What a client without tasks gets. Default wait, 45s.')
      .optional(),
    onDisconnect: z
      .enum(['keep', 'cancel'])
      .describe("What a client's disconnect does to a created job. Default keep.")
      .optional(),
  });

  return strict({
    version: z.literal(1).describe('Version of the format: 1.'),
    name: adapterName.describe('Name of the adapter.'),
    description: z.string().describe('What the adapter is for.').optional(),
    env: z
      .union(
        [
          z.array(variableName),
          z.record(
            variableName,
            strict({
              default: z.string().describe('Value when the variable is not set.').optional(),
              description: z.string().describe('What it is for.').optional(),
            }).nullable(),
          ),
        ],
        { error: 'must be a list of names, or a map of names to {default: text}' },
      )
      .describe('Variables that the adapter reads as env.<NAME>, from NAME or the file named by NAME_FILE.')
      .optional(),
    secrets: z
      .array(variableName)
      .describe('Secrets, read like env, as secrets.<NAME>; only in what is sent upstream, never in a path.')
      .optional(),
    reason: cel(
      'CEL over response that gives what an unwanted reply says, for people; for every step without its own.',
    ).optional(),
    upstream: strict({
      driver: z.literal(driver.name).describe('Kind of upstream.'),
      ...upstreamFields,
    }).describe('The system that is asked, and how it is reached.'),
    limits: strict({
      concurrency: z
        .int()
        .min(1)
        .max(1000)
        .describe('Upstream calls under way at once. Default 8.')
        .optional(),
      rate: strict({
        calls: z.int().min(1).max(1_000_000).describe('Calls.'),
        per: duration('Window, for example 1m.'),
      })
        .describe('At most this many upstream calls. Default: no limit.')
        .optional(),
    })
      .describe('How much the upstream is asked; shared by all tools of the adapter.')
      .optional(),
    tools: z.record(toolKey, tool).describe('Tools by name.'),
  });
}

export type RawAdapter = z.infer<ReturnType<typeof adapterSchema>>;
export type RawTool = RawAdapter['tools'][string];
type One<T> = T extends readonly (infer Item)[] ? Item : T;
export type RawCreateStep = One<NonNullable<RawTool['create']>>;
export type RawCancelStep = One<NonNullable<RawTool['cancel']>>;
export type RawFetchStep = One<NonNullable<RawMapping['fetch']>>;
export type RawFind = NonNullable<RawCreateStep['find']>;
export type RawStage = One<NonNullable<RawTool['status']>>;
export type RawState = RawStage['state'];
export type RawConfirm = NonNullable<RawTool['confirm']>[number];
export type RawAsk = NonNullable<RawTool['ask']>[number];
export type RawMapping = NonNullable<RawTool['result']>;
export type RawTiming = NonNullable<RawTool['timing']>;
