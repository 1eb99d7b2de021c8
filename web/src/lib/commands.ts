import { useEffect, useRef } from 'react'
import type { Snippet } from './api/types'
import { createStore } from './store'

export type CommandGroup = 'room' | 'app' | 'agents' | 'rooms' | 'messages'

/** Something a person can do from the palette, and perhaps by a key. */
export interface Command {
  id: string
  title: string
  /** Text next to the title, which is searched too. */
  detail?: string
  /** The title with what was looked for marked. */
  snippet?: Snippet
  group: CommandGroup
  /** As in `mod+k`, `?`, `alt+ArrowDown`. */
  keys?: string
  run: () => void
}

export const commandStore = createStore<readonly Command[]>([])

/** Offers commands while the component is there. */
export function useCommands(commands: readonly Command[]): void {
  const latest = useRef(commands)
  useEffect(() => {
    latest.current = commands
  })
  const signature = commands.map(({ id, title, detail }) => `${id} ${title} ${detail ?? ''}`).join('\n')

  useEffect(() => {
    const offered = latest.current.map((command, index) => ({ ...command, run: () => latest.current[index]?.run() }))
    commandStore.set([...commandStore.get(), ...offered])
    return () => commandStore.set(commandStore.get().filter((command) => !offered.includes(command)))
  }, [signature])
}

/** The best matches first, of equal ones the shortest. Every word has to be found in the title or the detail, letter by letter if not as a whole. */
export function search(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return [...commands]
  return commands
    .map((command) => ({ command, score: scoreOf(command, words) }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score || a.command.title.length - b.command.title.length)
    .map(({ command }) => command)
}

function scoreOf({ title, detail = '' }: Command, words: readonly string[]): number {
  let sum = 0
  for (const word of words) {
    const score = Math.max(matchScore(title.toLowerCase(), word), matchScore(detail.toLowerCase(), word) / 2)
    if (score === 0) return 0
    sum += score
  }
  return sum
}

/** 0 if the letters of a word are not there in this order. A match at the start beats one at the start of a word, in a word, and in pieces. */
export function matchScore(text: string, word: string): number {
  const at = text.indexOf(word)
  if (at === 0) return 100
  if (at > 0) return /[\p{L}\p{N}]/u.test(text[at - 1] ?? '') ? 50 : 80
  let from = 0
  let gaps = 0
  for (const letter of word) {
    const next = text.indexOf(letter, from)
    if (next < 0) return 0
    if (next > from && from > 0) gaps += 1
    from = next + 1
  }
  // Letters that are scattered over a long text are no match that a person would see.
  return gaps > Math.max(2, word.length / 2) ? 0 : 30 - gaps
}

/** Whether a key press is the one that `keys` names. */
export function isPressed(event: Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>, keys: string): boolean {
  const parts = keys.split('+')
  const key = parts.at(-1) ?? ''
  const wantsMod = parts.includes('mod')
  if ((event.ctrlKey || event.metaKey) !== wantsMod) return false
  if (event.altKey !== parts.includes('alt')) return false
  // A sign such as `?` brings its own Shift on some keyboards and none on others.
  if (key.length > 1 || wantsMod) {
    if (event.shiftKey !== parts.includes('shift')) return false
  }
  return event.key.toLowerCase() === key.toLowerCase()
}
