import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['e2e/**/*.test.ts'],
    // Each file has a server and a browser of its own; they wait more than they work.
    maxWorkers: 2,
    // Long enough for a busy machine; no test waits for it to pass.
    testTimeout: 240_000,
    hookTimeout: 120_000,
  },
})
