// Every file under bad/ is refused with exactly the problems its `# expect:` lines name, at those places.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadAdapter } from '../../src/config/load.ts';
import { httpFormat } from '../../src/drivers/http/format.ts';
import { formatProblem } from '../../src/errors.ts';

const folder = join(import.meta.dirname, 'bad');
const files = readdirSync(folder).map((name) => {
  const text = readFileSync(join(folder, name), 'utf8');
  const why = /^# (.*)$/m.exec(text)?.[1] ?? name;
  const expected = [...text.matchAll(/^# expect: (.*)$/gm)].map((match) => match[1]);
  return { name, text, why, expected };
});

describe('a faulty adapter', () => {
  it('has fixtures', () => {
    expect(files.length).toBeGreaterThan(80);
  });

  it.each(files)('is refused at the right place when $why ($name)', ({ name, text, expected }) => {
    const { adapter, problems } = loadAdapter(text, { file: name, formats: [httpFormat] });
    expect(problems.map((problem) => formatProblem(problem).slice(name.length + 1))).toEqual(expected);
    expect(expected).not.toEqual([]);
    expect(adapter).toBeUndefined();
  });

  it('never makes the loader throw, wherever the file is cut', () => {
    const whole = readFileSync(join(import.meta.dirname, 'good/github-actions.yaml'), 'utf8');
    for (let end = 0; end < whole.length; end += 61) {
      const { problems } = loadAdapter(whole.slice(0, end), { file: 'cut.yaml', formats: [httpFormat] });
      // A cut may leave a sound file only where the rest is optional.
      if (end < whole.indexOf('status:')) expect(problems, `cut at ${end}`).not.toEqual([]);
    }
  });
});
