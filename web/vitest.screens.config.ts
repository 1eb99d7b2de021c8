import { defineConfig } from 'vitest/config'

export default defineConfig({ test: { include: ['e2e/readme-screens.ts'], testTimeout: 60_000, hookTimeout: 60_000 } })
