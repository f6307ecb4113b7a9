// Replies of many kinds on their way into a result: logs that are cut, archives, pages.

import { describe, expect, it } from 'vitest';
import type { JobResult } from '../../src/drivers/driver.ts';
import type { Handler } from '../helpers/http-server.ts';
import { zip } from '../helpers/zip.ts';
import { adapted, always, routes, viewWith } from './adapted.ts';

/** The result of job 7, which ended well, and whose result mapping is `tool`. */
async function resultOf(tool: string, table: { [route: string]: Handler }): Promise<JobResult> {
  const { upstream, poll } = await adapted(
    { tool },
    { handler: routes({ 'GET /jobs/7': always(200, { state: 'done' }), ...table }) },
  );
  const outcome = await upstream.result(viewWith(), 'succeeded', await poll());
  if (outcome.kind !== 'ready') throw new Error(`not ready: ${outcome.reason}`);
  return outcome.result;
}

const lines = Array.from({ length: 100 }, (_, n) => `line ${n}\n`).join('');
const plain =
  (body: string): Handler =>
  (_request, response) =>
    void response.writeHead(200).end(body);

describe('a result whose reply is cut', () => {
  const tail = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/log", read: text, keep: { tail: 0.1KiB } }
      text: |
        The end of the log:
        \${{ response.body }}`;

  it('says so, with the numbers', async () => {
    const { text } = await resultOf(tail, { 'GET /jobs/7/log': plain(lines) });
    expect(text).toMatch(/^The end of the log:\nline 88\n(line \d+\n)+\n\n\(cut: 790 bytes, 96 are kept\)$/);
  });

  it('says nothing when all is there', async () => {
    const { text } = await resultOf(tail, { 'GET /jobs/7/log': plain('all\n') });
    expect(text).toBe('The end of the log:\nall\n\n');
  });

  it('says so where nobody knows how much there is', async () => {
    const { text } = await resultOf(tail.replace('tail: 0.1', 'head: 0.1'), {
      'GET /jobs/7/log': plain(lines),
    });
    expect(text).toContain('line 0\n');
    expect(text).toMatch(/\(cut: the upstream has more than the \d+ bytes that are kept\)$/);
  });

  it('can be told by the text itself', async () => {
    const own = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/log", read: jsonl, keep: { tail: 0.1KiB } }
      structured: { whole: "\${{ !response.truncated }}", bytes: "\${{ response.?bytes }}" }`;
    const { structured, text } = await resultOf(own, { 'GET /jobs/7/log': plain('{"a":1}\n'.repeat(50)) });
    expect(structured).toEqual({ whole: false, bytes: 400n });
    expect(text).toMatch(/\(cut: the upstream has more than the 12 items that are kept\)$/);
  });
});

describe('a result out of an archive', () => {
  it('joins the logs in it, each cut by itself', async () => {
    const tool = `    result:
      fetch: { request: "GET /jobs/\${{ job.id }}/logs", read: text, unzip: "*.txt", keep: { tail: 0.1KiB } }
      text: \${{ response.body.map(log, "== " + log.name + "\\n" + log.body).join("\\n") }}`;
    const archive = zip([
      { name: '1_a.txt', data: lines },
      { name: '2_b.txt', data: 'short\n' },
      { name: 'other.xml', data: '<x/>' },
    ]);
    const { text } = await resultOf(tool, {
      'GET /jobs/7/logs': (_request, response) => void response.writeHead(200).end(archive),
    });
    expect(text).toMatch(/^== 1_a.txt\nline 88\n[^=]*line 99\n\n== 2_b.txt\nshort\n\n\(cut: [^)]*\)$/);
  });
});
