import { createStore } from '@/lib/store'

/** Text that goes into the composer of a room, from elsewhere on the page. */
interface ComposerInsert {
  roomId: string
  text: string
}

export const composerInsert = createStore<ComposerInsert | null>(null)

export function putInComposer(roomId: string, text: string): void {
  composerInsert.set({ roomId, text })
}

/** What was typed stays; the new text goes below it. */
export function withInsert(typed: string, text: string): string {
  return typed.trim() === '' ? text : `${typed.trimEnd()}\n\n${text}`
}

/** As Markdown quotes it, with room to answer below. */
export function quoted(text: string): string {
  const lines = text.trim().split('\n')
  return `${lines.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n')}\n\n`
}
