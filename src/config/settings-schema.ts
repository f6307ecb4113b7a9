// The shape of the settings file, version 1.

import { z } from 'zod';
import { adapterName } from './adapter-schema.ts';
import { size, strict, variableName } from './shape.ts';
import { storePattern } from './store-address.ts';

const adapterEntry = strict({
  use: z.string().min(1).describe('Name of a shipped adapter, or path of a file, relative to this file.'),
  as: adapterName
    .describe("Name it is served under. Default: the adapter's own. Stored tasks belong to this name.")
    .optional(),
  prefix: z
    .string()
    .regex(/^[A-Za-z][A-Za-z0-9_]{0,62}$/, 'must be letters, digits and _, starting with a letter')
    .describe('Put before the name of each tool. Default: nothing.')
    .optional(),
  env: z
    .record(variableName, variableName)
    .describe("The adapter's name of a variable or secret: our name of it. Default: the same name.")
    .optional(),
  tools: z
    .array(z.string().min(1))
    .min(1)
    .describe('Only these tools of the adapter. Default: all.')
    .optional(),
});

/** Least severe last. */
export const logLevels = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const;
export type LogLevel = (typeof logLevels)[number];

/** Fields that flags and variables may give as well. */
export const publicUrlField = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' });
export const portField = z.int().min(0).max(65535);

export const settingsSchema = strict({
  version: z.literal(1).describe('Version of the settings: 1.'),
  listen: strict({
    host: z.string().min(1).describe('Address to listen on. Default 127.0.0.1.').optional(),
    port: portField.describe('Port; 0 takes a free one. Default 3737.').optional(),
    publicUrl: publicUrlField
      .describe('URL that clients use, when it is not the address listened on.')
      .optional(),
    hosts: z
      .array(z.string().min(1))
      .describe('Further host names that a request may name. Default: none.')
      .optional(),
    origins: z
      .array(z.string().min(1))
      .describe('Origins of web pages that may call. Default: none.')
      .optional(),
  })
    .describe('Where the server listens.')
    .optional(),
  store: z
    .string()
    .regex(storePattern, 'must be sqlite:PATH')
    .describe(
      'Where tasks are kept; a relative path starts at this file. Default sqlite:./taskferry.db in the working folder.',
    )
    .optional(),
  adapters: z
    .array(
      z.union([z.string().min(1), adapterEntry], {
        error: 'must be a name, a file, a folder, or a map with use',
      }),
    )
    .describe(
      'What is served: names of shipped adapters, files, folders (all but *.replay.yaml), or maps with use.',
    )
    .optional(),
  auth: strict({
    kind: z.literal('none').describe('none: anybody who reaches the address.'),
  })
    .describe('Who may call.')
    .optional(),
  limits: strict({
    requestBytes: size('Most bytes of one MCP request. Default 4MiB, at most 64MiB.').optional(),
  })
    .describe('Bounds of the server itself; bounds of an upstream are in its adapter.')
    .optional(),
  requestState: strict({
    keys: z
      .array(variableName)
      .describe(
        'Variables that hold signing keys of at least 32 characters, newest first. Default: one made and kept in the store.',
      )
      .optional(),
  })
    .describe('Signing of questions that are put before a task exists.')
    .optional(),
  log: strict({
    level: z.enum(logLevels).describe('Least severe kind that is logged. Default info.').optional(),
  })
    .describe('What is logged, on stderr.')
    .optional(),
});

export type RawSettings = z.infer<typeof settingsSchema>;
export type RawAdapterEntry = z.infer<typeof adapterEntry>;
