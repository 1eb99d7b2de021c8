import { commandStore } from '@/lib/commands'

/** What can be done by typing it: names of commands that the room offers anyway. */
export interface SlashCommand {
  name: string
  detail: string
  /** The command in the palette. */
  id: string
}

const commands: readonly SlashCommand[] = [
  { name: 'new', detail: 'New chat', id: 'new-chat' },
  { name: 'stop', detail: 'Stop everything in this room', id: 'stop' },
  { name: 'attach', detail: 'Attach files', id: 'attach' },
  { name: 'members', detail: 'Show or hide members', id: 'members' },
  { name: 'settings', detail: 'Room settings', id: 'room-settings' },
  { name: 'export', detail: 'Export as Markdown', id: 'export-markdown' },
]

/** Those that begin with what was typed after the slash. A skill of the same name goes before one. */
export function commandsAt(text: string, caret: number, skills: readonly { name: string }[]): SlashCommand[] {
  const typed = /^\s*\/([a-z]*)$/i.exec(text.slice(0, caret))
  if (!typed || text.slice(caret).trim() !== '') return []
  const word = (typed[1] ?? '').toLowerCase()
  return commands.filter(({ name }) => name.startsWith(word) && !skills.some((skill) => skill.name === name))
}

export function runSlashCommand({ id }: SlashCommand): void {
  commandStore.get().find((command) => command.id === id)?.run()
}
