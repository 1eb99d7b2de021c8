import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  // Long enough for a busy machine; no test waits for it to pass.
  test: { include: ['src/**/*.test.{ts,tsx}'], testTimeout: 60_000 },
})
