// What the npm package offers to programs: the server of `taskferry serve`, and the loaders in front of it.

export { loadRegistry, type Registry, type ServedAdapter } from './config/registry.ts';
export { loadSettings, type Settings } from './config/settings.ts';
export {
  type ErrorCode,
  formatProblem,
  type Problem,
  StoreError,
  TaskferryError,
} from './errors.ts';
export { formats, type RunningServer, type ServerOptions, startServer } from './server.ts';
