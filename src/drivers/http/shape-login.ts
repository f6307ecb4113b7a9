// Fields of `upstream:` for a login that is made before other requests.

import { z } from 'zod';
import { captureName } from '../../config/adapter-schema.ts';
import { cel, oneOrMany, strict } from '../../config/shape.ts';
import { stepShape } from './shape.ts';

const loginStep = strict({
  step: z.string().min(1).max(64).describe('Name for messages. Default: its position.').optional(),
  ...stepShape,
  request: z
    .string()
    .describe(
      'METHOD target. A path under baseUrl, or an absolute URL that is written here or is given by a hole that reads env.',
    ),
  expect: cel('CEL, true when the reply is as hoped. Default: any 2xx. Reads response and env.').optional(),
  capture: z
    .record(captureName, z.string())
    .describe(
      'Values of the reply, read as login.<name> in whatever is sent, like secrets; bare CEL. At most 16 KiB.',
    )
    .optional(),
  expires: z
    .string()
    .describe(
      'How long it holds: a duration such as 50m, or CEL over the reply that gives seconds from now or a time. Default 50m, at most 1d.',
    )
    .optional(),
});

export const loginShape = {
  login: oneOrMany(loginStep)
    .describe(
      'Requests made before others that read login.<name>. Kept in memory only, and made anew in time.',
    )
    .optional(),
  renewOn: cel(
    'CEL over response, true when a reply says that the login is no longer accepted: it is made anew, and the request once more. Default: response.status == 401.',
  ).optional(),
};

export type RawLogin = z.infer<z.ZodObject<typeof loginShape>>;
