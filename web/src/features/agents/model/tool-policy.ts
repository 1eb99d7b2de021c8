import type { Draft, PolicyList } from './draft'
import { t } from '../texts'

export interface Verdict {
  list: PolicyList
  /** The pattern that decided; none where nothing matched. */
  pattern: string | null
}

/** The server's rule: deny before ask before allow; unlisted tools ask. */
export function verdictOf(tools: Draft['tools'], tool: string): Verdict {
  for (const list of ['deny', 'ask', 'allow'] as const) {
    const pattern = tools[list].find((one) => matches(one, tool))
    if (pattern !== undefined) return { list, pattern }
  }
  return { list: 'ask', pattern: null }
}

/** `*` stands for any run of characters. */
export function matches(pattern: string, text: string): boolean {
  const [head = '', ...pieces] = pattern.split('*')
  if (pieces.length === 0) return pattern === text
  if (!text.startsWith(head)) return false
  const last = pieces.pop() ?? ''
  let from = head.length
  for (const piece of pieces) {
    const at = text.indexOf(piece, from)
    if (at < 0) return false
    from = at + piece.length
  }
  return text.length - last.length >= from && text.endsWith(last)
}

/** One sentence for people who try a name. */
export function sentenceFor(tool: string, { list, pattern }: Verdict): string {
  const because = pattern === null ? t.nothingHereNamesIt : t.becauseOf(pattern)
  switch (list) {
    case 'allow':
      return t.isUsedWithoutAsking(tool, because)
    case 'deny':
      return t.isRefused(tool, because)
    case 'ask':
      return t.asksYouFirst(tool, because)
  }
}
