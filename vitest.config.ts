import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    // Two workers: the tests start real servers and child processes, and CI machines are small.
    maxWorkers: 2,
  },
});
