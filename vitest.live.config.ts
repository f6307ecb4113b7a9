// Tests against real systems that are not npm packages; started by `npm run test:live`.

import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/live/**/*.live.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 100_000,
    fileParallelism: false,
    reporters: ['verbose'],
  },
});
