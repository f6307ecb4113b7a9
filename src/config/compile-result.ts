// Compiles `result` and `failure`: what the ended job becomes.

import type { Json } from '../exact-json.ts';
import type { ResultMapping } from './adapter.ts';
import type { RawMapping } from './adapter-schema.ts';
import { placeCompiler } from './compile-context.ts';
import { compileSteps, type StepPlace } from './compile-step.ts';
import type { Path } from './driver-format.ts';
import { defaultValueBytes, largestBytes } from './limits.ts';
import { fetchedNames, namesWith, response } from './tool-names.ts';
import { parseSize } from './units.ts';

export function compileResult(
  raw: RawMapping | undefined,
  path: Path,
  place: Omit<StepPlace, 'role' | 'lastReply'>,
): ResultMapping {
  const maxBytes = raw?.maxBytes === undefined ? defaultValueBytes : (parseSize(raw.maxBytes) ?? 0);
  if (maxBytes < 1 || maxBytes > largestBytes)
    place.context.problem([...path, 'maxBytes'], 'must be more than nothing and at most 16MiB');
  const sized = { ...place, maxBytes };
  const fetch = compileSteps(raw?.fetch, [...path, 'fetch'], { ...sized, role: 'fetch', lastReply: true });
  const compiler = placeCompiler(place.context, {
    names: namesWith(place.base, fetch.captured, { response, ...fetchedNames(fetch.fetched) }),
    maxBytes,
  });
  return {
    fetch: fetch.steps,
    structured:
      // The file was read as JSON values only.
      raw?.structured === undefined
        ? undefined
        : compiler.value([...path, 'structured'], raw.structured as Json),
    text: raw?.text === undefined ? undefined : compiler.text([...path, 'text'], raw.text),
    links: (raw?.links ?? []).map((link, index) => {
      const at = [...path, 'links', index];
      return {
        uri: compiler.text([...at, 'uri'], link.uri),
        name: compiler.text([...at, 'name'], link.name),
        mimeType: link.mimeType,
        description:
          link.description === undefined
            ? undefined
            : compiler.text([...at, 'description'], link.description),
      };
    }),
    maxBytes,
  };
}
