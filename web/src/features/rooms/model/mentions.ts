export interface Named {
  id: string
  name: string
}

/** The agents that a text names with `@`, in no particular order. The longest name that fits is meant. */
export function mentionsIn(text: string, agents: readonly Named[]): string[] {
  const byLength = agents.toSorted((a, b) => b.name.length - a.name.length)
  const found = new Set<string>()
  for (const { index } of text.matchAll(/(?<![\p{L}\p{N}_])@/gu)) {
    const rest = text.slice(index + 1)
    const named = byLength.find(({ name }) => startsWithName(rest, name))
    if (named) found.add(named.id)
  }
  return [...found]
}

function startsWithName(text: string, name: string): boolean {
  if (!text.toLowerCase().startsWith(name.toLowerCase())) return false
  return !/^[\p{L}\p{N}_-]/u.test(text.slice(name.length))
}

export interface Completion {
  /** Where the `@` stands. */
  start: number
  matches: readonly Named[]
}

/** What could follow an `@` that is being typed just before the caret. */
export function completionAt(text: string, caret: number, agents: readonly Named[]): Completion | null {
  const before = text.slice(0, caret)
  const typed = /(?:^|[\s(])@([^\s@]*)$/u.exec(before)
  if (!typed) return null
  const word = (typed[1] ?? '').toLowerCase()
  const matches = agents.filter(({ name }) => name.toLowerCase().startsWith(word))
  return matches.length === 0 ? null : { start: caret - word.length - 1, matches }
}

export function complete(text: string, completion: Completion, caret: number, chosen: Named): { text: string; caret: number } {
  const inserted = `@${chosen.name} `
  const after = text.slice(caret).replace(/^ /, '')
  return { text: text.slice(0, completion.start) + inserted + after, caret: completion.start + inserted.length }
}

/** What the text names goes before what was chosen beside it. */
export function mentionsWith(named: readonly string[], chosen: string | null): readonly string[] {
  return named.length > 0 || chosen === null ? named : [chosen]
}
