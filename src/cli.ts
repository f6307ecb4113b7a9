// The command line: `taskferry serve` and `taskferry check`.
// Exit codes: 0 done, 1 it could not be done (the reason is on stderr), 2 the command line is wrong.

import { parseArgs } from 'node:util';
import type { SettingsFlags } from './config/settings-overrides.ts';
import { formatProblem, formatWarning, type Problem, sentenceOf, TaskferryError } from './errors.ts';
import type { RunningServer } from './server.ts';
import { version } from './version.ts';

// The parts are loaded by the command that needs them, so that --help and --version answer at once.

const help = `taskferry ${version}: serves job APIs as MCP tools whose calls are durable tasks

Usage:
  taskferry serve [options]     serve the configured adapters over MCP (Streamable HTTP, path /mcp)
  taskferry check FILE...       check adapter and settings files or folders; needs no variables and no network

Options of serve (they win over TASKFERRY_* variables, which win over the settings file):
  --config FILE                 settings file; see config/taskferry.yaml for an example
  --adapter NAME|FILE|DIR       what to serve: a shipped adapter, a file or a folder; may be given several times
  --store sqlite:PATH           where tasks are kept (default sqlite:./taskferry.db)
  --host HOST                   address to listen on (default 127.0.0.1)
  --port N                      port to listen on (default 3737; 0 takes a free one)

  -h, --help                    show this text
  -v, --version                 show the version
`;

/** Runs one command; sets the process's exit code. */
export async function main(args: readonly string[]): Promise<void> {
  // Whoever reads the log may go away; that must not end the server.
  process.stderr.on('error', () => {});
  try {
    process.exitCode = await run(args);
  } catch (error) {
    if (!(error instanceof TaskferryError)) throw error;
    complain(`taskferry: ${sentenceOf(error)}`);
    process.exitCode = 1;
  }
}

async function run(args: readonly string[]): Promise<number> {
  const [command, ...rest] = args;
  if (command === '--version' || command === '-v') return say(version);
  if (command === undefined || command === '--help' || command === '-h' || command === 'help') {
    if (command === undefined) {
      complain(help.trimEnd());
      return 2;
    }
    return say(help.trimEnd());
  }
  if (rest.includes('--help') || rest.includes('-h')) return say(help.trimEnd());
  if (command === 'serve') return serve(rest);
  if (command === 'check') return check(rest);
  return misused(`there is no command "${command}"`);
}

async function serve(args: readonly string[]): Promise<number> {
  const flags = serveFlags(args);
  if ('misuse' in flags) return misused(flags.misuse);
  const { loadSettings } = await import('./config/settings.ts');
  const { loadRegistry } = await import('./config/registry.ts');
  const { formats, startServer } = await import('./server.ts');
  const environment = process.env;
  const { settings, ...loaded } = loadSettings({ flags, environment, cwd: process.cwd() });
  if (settings === undefined) return refuse(loaded.problems, loaded.warnings);
  const { registry, problems, warnings } = loadRegistry(settings.adapters, { formats, environment });
  if (registry === undefined) return refuse(problems, [...loaded.warnings, ...warnings]);
  warn([...loaded.warnings, ...warnings]);
  const server = await startServer({ settings, adapters: registry.adapters, environment });
  const end = stopped(server);
  complain(`taskferry ${version} ready at ${server.url} with ${toolList(server.tools)}${followed(server)}`);
  await end;
  complain('taskferry: stopped');
  // A call that was cut off may still wait for its upstream; the next start takes it up.
  process.exit(0);
}

function serveFlags(args: readonly string[]): SettingsFlags | { misuse: string } {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        config: { type: 'string' },
        adapter: { type: 'string', multiple: true },
        store: { type: 'string' },
        host: { type: 'string' },
        port: { type: 'string' },
      },
    });
    const { adapter, ...others } = values;
    return { ...others, adapters: adapter };
  } catch (error) {
    return { misuse: sentenceOf(error) };
  }
}

async function check(args: readonly string[]): Promise<number> {
  const option = args.find((argument) => argument.startsWith('-'));
  if (option !== undefined) return misused(`check has no option ${option}`);
  if (args.length === 0) return misused('check needs the files to check');
  const { checkFiles } = await import('./config/check.ts');
  const { formats } = await import('./server.ts');
  const { lines, exitCode } = checkFiles(args, formats);
  for (const line of lines) say(line);
  return exitCode;
}

function toolList(tools: readonly string[]): string {
  if (tools.length === 0) return 'no tools';
  return `${tools.length === 1 ? 'tool' : 'tools'} ${tools.join(', ')}`;
}

function followed({ following }: RunningServer): string {
  if (following === 0) return '';
  return `, following ${following} ${following === 1 ? 'task' : 'tasks'} of earlier runs`;
}

/** Resolves after the first SIGINT or SIGTERM, when the server has stopped. A second signal ends at once. */
function stopped(server: RunningServer): Promise<void> {
  return new Promise((resolve, reject) => {
    let closing = false;
    const stop = (signal: NodeJS.Signals): void => {
      if (closing) process.exit(1);
      closing = true;
      complain(`taskferry: ${signal}, finishing what is under way (again to stop at once)`);
      server.close().then(resolve, reject);
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
  });
}

function refuse(problems: readonly Problem[], warnings: readonly Problem[]): number {
  warn(warnings);
  for (const problem of problems) complain(formatProblem(problem));
  complain('taskferry: nothing was started');
  return 1;
}

function warn(warnings: readonly Problem[]): void {
  for (const warning of warnings) complain(formatWarning(warning));
}

function misused(what: string): number {
  complain(`taskferry: ${what} (taskferry --help shows how it is called)`);
  return 2;
}

function say(text: string): number {
  process.stdout.write(`${text}\n`);
  return 0;
}

function complain(text: string): void {
  process.stderr.write(`${text}\n`);
}
