import { useEffect, useRef } from 'react'
import { createStore } from './store'

/** Something a person can do from the palette, and perhaps by a key. */
export interface Command {
  id: string
  title: string
  /** Text next to the title, which is searched too. */
  detail?: string
  group: string
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

/** Every word has to be there somewhere; titles that begin with the search come first. */
export function search(commands: readonly Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = commands.filter(({ title, detail = '', group }) => {
    const all = `${title} ${detail} ${group}`.toLowerCase()
    return words.every((word) => all.includes(word))
  })
  const first = words[0]
  if (first === undefined) return found
  const rank = ({ title }: Command): number => (title.toLowerCase().startsWith(first) ? 0 : 1)
  return found.toSorted((a, b) => rank(a) - rank(b))
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
