// Puts a compressed copy beside each file that gains by it; the server sends that to browsers that take it.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { constants, gzipSync } from 'node:zlib'

const dist = fileURLToPath(new URL('../dist', import.meta.url))
const worth = /\.(js|css|html|svg|json|webmanifest)$/

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !worth.test(entry.name)) continue
  const file = join(entry.parentPath, entry.name)
  const content = readFileSync(file)
  const compressed = gzipSync(content, { level: constants.Z_BEST_COMPRESSION })
  if (compressed.length < content.length) writeFileSync(`${file}.gz`, compressed)
}
