export interface Block {
  kind: 'markdown' | 'code'
  /** Where it begins in the whole text. */
  start: number
  text: string
  /** Of code: what follows the opening fence. */
  language: string
  /** Of code: its fence was closed. */
  isClosed: boolean
}

const fencePattern = /^( {0,3})(`{3,}|~{3,})(.*)$/
const anyFencePattern = /^\s*(`{3,}|~{3,})/
const listPattern = /^\s{0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
const continuedPattern = /^(?: {2,}|\t)/

interface Line {
  text: string
  start: number
  end: number
}

/**
 * Cuts Markdown into pieces that can be rendered each for itself, so that a growing text renders only its last one.
 * Fenced code stands alone; lists stay whole; everything else ends at an empty line.
 */
export function splitBlocks(source: string, from = 0): Block[] {
  const blocks: Block[] = []
  let open: { start: number; end: number; isList: boolean; fence: string | null; hasBlank: boolean } | null = null

  const close = (): void => {
    if (open) blocks.push(markdown(source, open.start, open.end))
    open = null
  }

  for (let line = lineAt(source, from); line; line = lineAt(source, line.end)) {
    const isBlank = line.text.trim() === ''
    if (open?.fence) {
      if (closes(line.text, open.fence)) open.fence = null
      open.end = line.end
      continue
    }
    const continuesList = open?.isList && (continuedPattern.test(line.text) || listPattern.test(line.text))
    const fence = continuesList ? null : fencePattern.exec(line.text)
    if (fence && !(fence[2]?.startsWith('`') && fence[3]?.includes('`'))) {
      close()
      const code = codeFrom(source, line, fence[2] ?? '```', (fence[3] ?? '').trim(), fence[1]?.length ?? 0)
      blocks.push(code.block)
      line = code.last
      continue
    }
    if (isBlank) {
      if (open) {
        open.end = line.end
        open.hasBlank = true
      }
      continue
    }
    if (open?.hasBlank && !continuesList) close()
    open ??= { start: line.start, end: line.end, isList: listPattern.test(line.text), fence: null, hasBlank: false }
    open.end = line.end
    open.hasBlank = false
    if (open.isList) open.fence = anyFencePattern.exec(line.text)?.[1] ?? null
  }
  close()
  return blocks
}

function markdown(source: string, start: number, end: number): Block {
  return { kind: 'markdown', start, text: source.slice(start, end), language: '', isClosed: true }
}

function codeFrom(source: string, opening: Line, fence: string, info: string, indent: number): { block: Block; last: Line } {
  const language = info.split(/\s/)[0] ?? ''
  const base = { kind: 'code' as const, start: opening.start, language }
  const body: string[] = []
  let last = opening
  for (let line = lineAt(source, opening.end); line; line = lineAt(source, line.end)) {
    last = line
    if (closes(line.text, fence)) return { block: { ...base, text: body.join('\n'), isClosed: true }, last }
    body.push(indent > 0 ? line.text.replace(new RegExp(`^ {0,${indent}}`), '') : line.text)
  }
  return { block: { ...base, text: body.join('\n'), isClosed: false }, last }
}

function closes(text: string, fence: string): boolean {
  const trimmed = text.trim()
  return trimmed.length >= fence.length && trimmed === (fence[0] ?? '`').repeat(trimmed.length)
}

function lineAt(source: string, start: number): Line | null {
  if (start >= source.length) return null
  const newline = source.indexOf('\n', start)
  const end = newline === -1 ? source.length : newline + 1
  return { text: source.slice(start, newline === -1 ? end : newline).replace(/\r$/, ''), start, end }
}

/** Splits a text that only grows without looking again at what cannot change any more. */
export class BlockSplitter {
  private text = ''
  private blocks: Block[] = []

  update(text: string): readonly Block[] {
    if (text === this.text) return this.blocks
    // Not only the last: a line that begins with "2" is a paragraph until it goes on with ". " and joins the list before.
    const isLonger = text.startsWith(this.text)
    const kept = isLonger ? this.blocks.slice(0, -2) : []
    const from = isLonger ? (this.blocks[kept.length]?.start ?? 0) : 0
    this.blocks = [...kept, ...splitBlocks(text, from)]
    this.text = text
    return this.blocks
  }
}

const definitionPattern = /^ {0,3}\[(?!\^)[^\]\n]+\]:[ \t]*\S.*$/gm

/** Link targets may be defined anywhere in a text; each piece that may name one is given them all. */
export function definitionsIn(text: string): string {
  return text.includes(']:') ? (text.match(definitionPattern) ?? []).join('\n') : ''
}

/** A footnote and its mark are far apart and numbered through: such a text is rendered whole. */
export function hasFootnotes(text: string): boolean {
  return text.includes('[^') && /^ {0,3}\[\^[^\]\n]+\]:/m.test(text)
}
