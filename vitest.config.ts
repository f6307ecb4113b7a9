import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Real job systems have a run of their own: npm run test:live.
    exclude: [...configDefaults.exclude, 'test/live/**'],
    testTimeout: 20_000,
    // Two workers: the tests start real servers and child processes, and CI machines are small.
    maxWorkers: 2,
  },
});
