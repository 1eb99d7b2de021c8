import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { type Plugin, defineConfig } from 'vite'

const server = process.env.GREENROOM_URL ?? 'http://127.0.0.1:7878'

// The server checks Host and Origin, so both are passed on as the browser sent them.
const proxy = {
  '/api': { target: server, ws: true },
  '/openapi.json': { target: server },
  '/docs': { target: server },
  '/healthz': { target: server },
  '/readyz': { target: server },
  '/metrics': { target: server },
  // A pattern, because a plain '/mcp' would also match the page /mcp-servers.
  '^/(mcp|sse)([/?]|$)': { target: server },
}

// What the server sends with the page; `preview` sends it too, so that a violation shows before it is embedded.
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self' data: blob:",
  "connect-src 'self'",
  "worker-src 'self'",
  "manifest-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** The server sends what stands compressed beside a file; compressing once, here, can take its time. */
function compressed(): Plugin {
  return {
    name: 'compressed',
    apply: 'build',
    writeBundle({ dir = 'dist' }, bundle) {
      for (const name of Object.keys(bundle).filter((file) => /\.(js|css|html|svg)$/.test(file))) {
        const content = readFileSync(`${dir}/${name}`)
        if (content.length > 1000) writeFileSync(`${dir}/${name}.gz`, gzipSync(content, { level: 9 }))
      }
    },
  }
}

export default defineConfig({
  plugins: [react(), compressed()],
  resolve: { alias: { '@': fileURLToPath(new URL('./src', import.meta.url)) } },
  server: { proxy },
  preview: { proxy, headers: { 'content-security-policy': contentSecurityPolicy } },
  worker: { format: 'es' },
  build: {
    target: 'es2022',
    // Another folder lets a build of the server, which embeds `dist`, go on undisturbed.
    outDir: process.env.GREENROOM_DIST ?? 'dist',
    emptyOutDir: true,
    // Inlined fonts or images would be `data:` addresses, which the policy allows for images only.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 800,
    // What every page needs is one file: many small ones compress worse.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'first', tags: ['$initial'] }] } } },
  },
})
