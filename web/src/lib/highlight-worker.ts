import { type HighlighterCore, createCssVariablesTheme, createHighlighterCore } from 'shiki/core'
import { createJavaScriptRegexEngine } from 'shiki/engine/javascript'
import type { HighlightAnswer, HighlightRequest, Token } from './highlight'

// Off the page's own thread: a grammar takes hundreds of milliseconds to get ready, and someone may be typing.
const grammars = {
  bash: () => import('shiki/langs/bash.mjs'),
  c: () => import('shiki/langs/c.mjs'),
  css: () => import('shiki/langs/css.mjs'),
  diff: () => import('shiki/langs/diff.mjs'),
  docker: () => import('shiki/langs/docker.mjs'),
  go: () => import('shiki/langs/go.mjs'),
  html: () => import('shiki/langs/html.mjs'),
  java: () => import('shiki/langs/java.mjs'),
  javascript: () => import('shiki/langs/javascript.mjs'),
  json: () => import('shiki/langs/json.mjs'),
  markdown: () => import('shiki/langs/markdown.mjs'),
  python: () => import('shiki/langs/python.mjs'),
  rust: () => import('shiki/langs/rust.mjs'),
  sql: () => import('shiki/langs/sql.mjs'),
  toml: () => import('shiki/langs/toml.mjs'),
  tsx: () => import('shiki/langs/tsx.mjs'),
  typescript: () => import('shiki/langs/typescript.mjs'),
  xml: () => import('shiki/langs/xml.mjs'),
  yaml: () => import('shiki/langs/yaml.mjs'),
}

type Grammar = keyof typeof grammars

const otherNames: Record<string, Grammar> = {
  'c++': 'c',
  console: 'bash',
  cpp: 'c',
  dockerfile: 'docker',
  js: 'javascript',
  jsonc: 'json',
  jsonl: 'json',
  jsx: 'tsx',
  md: 'markdown',
  patch: 'diff',
  py: 'python',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  svg: 'xml',
  ts: 'typescript',
  yml: 'yaml',
  zsh: 'bash',
}

const theme = createCssVariablesTheme({ name: 'greenroom', variablePrefix: '--shiki-', fontStyle: false })
let highlighter: Promise<HighlighterCore> | null = null

function start(): Promise<HighlighterCore> {
  const engine = createJavaScriptRegexEngine({ forgiving: true })
  return createHighlighterCore({ themes: [theme], langs: [], engine })
}

async function highlight(code: string, language: string): Promise<Token[][] | null> {
  const name = language.toLowerCase()
  const grammar = Object.hasOwn(grammars, name) ? (name as Grammar) : otherNames[name]
  if (!grammar) return null
  highlighter ??= start()
  const core = await highlighter
  if (!core.getLoadedLanguages().includes(grammar)) await core.loadLanguage(await grammars[grammar]())
  const { tokens } = core.codeToTokens(code, { lang: grammar, theme: 'greenroom' })
  return tokens.map((line) => line.map(({ content, color }) => ({ text: content, color })))
}

addEventListener('message', ({ data }: MessageEvent<HighlightRequest>) => {
  const answer = (lines: HighlightAnswer['lines']): void => postMessage({ id: data.id, lines } satisfies HighlightAnswer)
  // Plain code is as true as coloured code.
  highlight(data.code, data.language).then(answer, () => answer(null))
})
