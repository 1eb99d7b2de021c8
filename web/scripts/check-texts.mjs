// Every string that people read stands in a table (lib/i18n.ts). Finds strings in JSX that stand in none, reads of a table while
// a module is loaded (which would keep the language of that moment), and entries that nothing shows.
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'

const root = resolve(process.argv[2] ?? fileURLToPath(new URL('../src', import.meta.url)))
/** Attributes whose value is read by people. */
const shown = new Set(['label', 'title', 'aria-label', 'placeholder', 'alt', 'hint', 'detail', 'lead', 'note', 'what', 'keep', 'confirm', 'choose', 'fileLabel', 'keyLabel'])
/** Names and examples of JSON are the same in every language. */
const names = /^(Greenroom|SKILL.md|[{][^]*|[^A-Za-z]*)$/
const verbatim = new Set(['code', 'kbd', 'pre'])

const files = readdirSync(root, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !/\.(test|d)\.tsx?$/.test(entry.name))
  .map((entry) => join(entry.parentPath, entry.name))
  .filter((file) => !file.includes('/testing/'))

const faults = []
const read = new Map()

for (const file of files.filter((name) => !/\/texts\/\w+\.ts$/.test(name))) {
  const source = ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true, file.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS)
  const fault = (node, what) => {
    const { line } = source.getLineAndCharacterOfPosition(node.getStart())
    faults.push(`src/${relative(root, file)}:${line + 1}: ${what}`)
  }
  const table = tableOf(source, file)
  const visit = (node, isLater) => {
    const deeper = isLater || ts.isFunctionLike(node)
    if (ts.isJsxText(node) && !names.test(node.text.trim()) && !verbatim.has(tagOf(node.parent))) fault(node, `“${node.text.trim()}” belongs in a table`)
    if (isText(node) && !names.test(node.text) && isShown(node)) fault(node, `“${node.text}” belongs in a table`)
    if (table && ts.isPropertyAccessExpression(node) && node.expression.getText() === 't') {
      read.set(table, (read.get(table) ?? new Set()).add(node.name.text))
      if (!isLater) fault(node, 'is read while the module is loaded: make it a function or a getter')
    }
    ts.forEachChild(node, (child) => visit(child, deeper))
  }
  visit(source, false)
}

for (const file of files.filter((name) => name.endsWith('/texts/en.ts'))) {
  const used = read.get(dirname(dirname(file))) ?? new Set()
  for (const [, key] of readFileSync(file, 'utf8').matchAll(/^ {2}(\w+):/gm)) {
    if (!used.has(key)) faults.push(`src/${relative(root, file)}: nothing shows ${key}`)
  }
}

if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(1)
}

/** The folder of the table that `t` is in this file. */
function tableOf(source, file) {
  for (const statement of source.statements.filter(ts.isImportDeclaration)) {
    const from = statement.moduleSpecifier.text
    if (from === './texts' || from.endsWith('../texts')) return join(dirname(file), dirname(from))
  }
  return null
}

function isText(node) {
  return ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)
}

/** The value of an attribute that is shown, or one of the alternatives between braces. */
function isShown(node) {
  let outer = node.parent
  while (ts.isConditionalExpression(outer) || ts.isParenthesizedExpression(outer) || ts.isBinaryExpression(outer)) {
    if (ts.isBinaryExpression(outer) && !['??', '||', '&&'].includes(outer.operatorToken.getText())) return false
    if (ts.isConditionalExpression(outer) && outer.condition === node) return false
    outer = outer.parent
  }
  if (ts.isJsxAttribute(outer)) return shown.has(outer.name.getText())
  if (!ts.isJsxExpression(outer)) return false
  if (ts.isJsxAttribute(outer.parent)) return shown.has(outer.parent.name.getText())
  return !verbatim.has(tagOf(outer.parent))
}

function tagOf(element) {
  return ts.isJsxElement(element) ? element.openingElement.tagName.getText() : ''
}
