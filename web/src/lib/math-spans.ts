/**
 * Formulas in Markdown, found before Markdown is parsed: it would take the backslashes of `\(` for escapes. Each becomes a
 * code span that begins with a mark, which `formulaIn` recognizes.
 */
const inlineMark = '\uE000'
const displayMark = '\uE001'
/** Longer ones are not formulas but a delimiter that was never closed. */
const longest = 4000

export interface Formula {
  tex: string
  isDisplay: boolean
}

export function formulaIn(code: string): Formula | null {
  const mark = code.charAt(0)
  if (mark !== inlineMark && mark !== displayMark) return null
  return { tex: code.slice(1), isDisplay: mark === displayMark }
}

export function markFormulas(source: string): string {
  if (!/\$|\\[([]/.test(source)) return source
  let result = ''
  let at = 0
  while (at < source.length) {
    const found = fenceAt(source, at) ?? codeAt(source, at) ?? formulaAt(source, at)
    if (found) {
      result += found.text
      at = found.end
    } else {
      // An escaped sign is copied with its backslash, so that `\$` begins nothing.
      const length = source.charAt(at) === '\\' ? 2 : 1
      result += source.slice(at, at + length)
      at += length
    }
  }
  return result
}

interface Found {
  text: string
  end: number
}

/** A fence inside a list, which is copied up to its end. */
function fenceAt(source: string, at: number): Found | null {
  if (at > 0 && source.charAt(at - 1) !== '\n') return null
  const fence = /^[ \t]*(`{3,}|~{3,})[^\n]*\n/.exec(source.slice(at, at + 200))
  if (!fence) return null
  const close = new RegExp(`^[ \\t]*${fence[1]}[ \\t]*$`, 'm')
  const rest = source.slice(at + fence[0].length)
  const closed = close.exec(rest)
  const end = closed ? at + fence[0].length + closed.index + closed[0].length : source.length
  return { text: source.slice(at, end), end }
}

function codeAt(source: string, at: number): Found | null {
  const ticks = /^`+/.exec(source.slice(at, at + 50))?.[0]
  if (!ticks) return null
  for (let end = source.indexOf(ticks, at + ticks.length); end !== -1; end = source.indexOf(ticks, end + 1)) {
    if (source.charAt(end + ticks.length) === '`' || source.charAt(end - 1) === '`') continue
    return { text: source.slice(at, end + ticks.length), end: end + ticks.length }
  }
  return { text: ticks, end: at + ticks.length }
}

const delimiters = [
  { open: '$$', close: '$$', isDisplay: true },
  { open: '\\[', close: '\\]', isDisplay: true },
  { open: '\\(', close: '\\)', isDisplay: false },
] as const

function formulaAt(source: string, at: number): Found | null {
  for (const { open, close, isDisplay } of delimiters) {
    if (!source.startsWith(open, at)) continue
    const end = source.indexOf(close, at + open.length)
    return end === -1 ? null : formula(source.slice(at + open.length, end), isDisplay, end + close.length)
  }
  return source.charAt(at) === '$' ? dollarsAt(source, at) : null
}

/** Between single dollars only where they cannot be prices: no space inside the signs, no digit behind them, one line. */
function dollarsAt(source: string, at: number): Found | null {
  const line = source.slice(at + 1, at + longest).split('\n', 1)[0] ?? ''
  const match = /^(?! )((?:[^$\\]|\\.)*[^\s\\$])\$(?!\d)/.exec(line)
  // A number and then a word is a price in a sentence.
  return match?.[1] === undefined || /^\d[\d.,]*\s+\p{L}{2}/u.test(match[1]) ? null : formula(match[1], false, at + 2 + match[1].length)
}

function formula(tex: string, isDisplay: boolean, end: number): Found | null {
  const line = tex.trim().replaceAll('\n', ' ')
  if (line === '' || line.length > longest || line.includes('`')) return null
  return { text: `\`${isDisplay ? displayMark : inlineMark}${line}\``, end }
}
