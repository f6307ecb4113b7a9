// What the log says at its most talkative.

import { expect, it, onTestFinished, vi } from 'vitest';
import { newTaskId, withoutTaskIds } from '../../src/tasks/ids.ts';
import { mcpRequest } from '../helpers/mcp-request.ts';
import { startTaskferry } from '../helpers/start-taskferry.ts';

const adapter = `version: 1
name: quiet
upstream: { driver: http, baseUrl: "http://127.0.0.1:9" }
tools:
  run:
    description: Runs.
    call: { request: GET /x }
`;

it('task ids are in no line, also where a request is refused for one', async () => {
  const lines: string[] = [];
  const spy = vi.spyOn(process.stderr, 'write').mockImplementation((line) => {
    lines.push(String(line));
    return true;
  });
  onTestFinished(() => spy.mockRestore());
  const server = await startTaskferry({ adapters: [adapter], logLevel: 'debug' });
  onTestFinished(() => server.close());
  const taskId = newTaskId(Date.now());
  await mcpRequest(server.url, 'tasks/get', { taskId }, { headers: { 'mcp-name': 'other' } });
  const refused = lines.filter((line) => line.includes('an MCP request was refused'));
  expect(refused).toHaveLength(1);
  expect(refused[0]).toContain('[task id]');
  expect(lines.join('')).not.toContain(taskId);
});

it('other words of the same letters stay', () => {
  const id = newTaskId(1_900_000_000_000);
  const key = '1b4e28ba-2fa1-41d2-883f-0016d3cca427';
  const sha = 'da39a3ee5e6b4b0d3255bfef95601890afd80709';
  expect(withoutTaskIds(`"${id}" \\n${id} ${id}x ${key} ${sha}`)).toBe(
    `"[task id]" \\n[task id] ${id}x ${key} ${sha}`,
  );
});
