// The first load: the entry script and what it pulls in at once, gzipped. What loads later is listed, not counted.
import { readFileSync, readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

const limit = 250_000
const dist = fileURLToPath(new URL('../dist/', import.meta.url))
const page = readFileSync(`${dist}index.html`, 'utf8')
const first = new Set([...page.matchAll(/(?:src|href)="\/(assets\/[^"]+\.js)"/g)].map(([, path]) => path))

// Static imports of the entry belong to the first load even where the page does not name them.
for (const path of first) {
  const text = readFileSync(dist + path, 'utf8')
  for (const [, name] of text.matchAll(/(?:import|from)\s*"\.\/([^"]+\.js)"/g)) first.add(`assets/${name}`)
}

const size = (path) => gzipSync(readFileSync(dist + path), { level: 9 }).length
const total = [...first].reduce((sum, path) => sum + size(path), 0)
const css = readdirSync(`${dist}assets`).filter((name) => name.endsWith('.css'))
const styles = css.reduce((sum, name) => sum + size(`assets/${name}`), 0)
console.log(`first load: ${(total / 1000).toFixed(1)} kB gzipped JavaScript, all styles ${(styles / 1000).toFixed(1)} kB`)
if (total > limit) {
  console.error(`The first load may have ${limit / 1000} kB at most: load something later.`)
  process.exit(1)
}
