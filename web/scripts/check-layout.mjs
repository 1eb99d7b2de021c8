// What house style asks of the folders and cannot be said in the linter's own words:
// app → features → {feed, components, lib}, features never import a sibling, kebab-case, short files, no barrels.
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../src', import.meta.url))
const longest = 200
const generated = new Set(['lib/api/schema.d.ts'])
const lower = ['feed', 'components', 'lib']
const may = { app: ['app', 'features', ...lower], features: ['features', ...lower] }
const mayImport = (from) => may[from] ?? { feed: ['feed', 'lib'], components: ['components', 'lib'], lib: ['lib'] }[from]

const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(root, join(entry.parentPath, entry.name)))

const faults = []
const importPattern = /(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g

for (const file of files) {
  const fault = (what) => faults.push(`src/${file}: ${what}`)
  if (!/^[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9-]+)*$/.test(basename(file))) fault('name it in kebab-case')
  if (/^index\.tsx?$/.test(basename(file))) fault('no barrels: import from the file itself')
  if (!/\.(ts|tsx|css)$/.test(file) || generated.has(file)) continue
  const text = readFileSync(join(root, file), 'utf8')
  const lines = text.split('\n').length
  const isTable = /\/texts\/\w+\.ts$/.test(file)
  if (lines > longest && !isTable) fault(`${lines} lines; at most ${longest}`)
  if (text.includes('dangerouslySetInnerHTML')) fault('model, tool and user text is data: never as HTML')
  if (/queryKey:\s*\[/.test(text)) fault('take the key from lib/api/query-keys.ts: two lists of words may be the same')
  const [room, feature] = file.split('/')
  if (!file.includes('/')) continue
  for (const [, specifier] of text.matchAll(importPattern)) {
    const target = specifier.startsWith('@/')
      ? specifier.slice(2)
      : specifier.startsWith('.')
        ? relative(root, resolve(root, dirname(file), specifier))
        : undefined
    if (target === undefined) continue
    const [toRoom, toFeature] = target.split('/')
    if (!mayImport(room)?.includes(toRoom)) fault(`${room} must not import ${toRoom} (${specifier})`)
    if (room === 'features' && toRoom === 'features' && feature !== toFeature) {
      fault(`features must not import their siblings (${specifier})`)
    }
  }
}

if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(1)
}
