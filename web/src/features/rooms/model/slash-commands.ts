import { commandStore } from '@/lib/commands'
import { t } from '../texts'

/** What can be done by typing it: names of commands that the room offers anyway. */
export interface SlashCommand {
  name: string
  detail: string
  /** The command in the palette. */
  id: string
}

const commands: readonly SlashCommand[] = [
  { name: 'new', get detail() { return t.newChat }, id: 'new-chat' },
  { name: 'stop', get detail() { return t.stopEverythingInThisRoom }, id: 'stop' },
  { name: 'attach', get detail() { return t.attachFiles }, id: 'attach' },
  { name: 'members', get detail() { return t.showOrHideMembers }, id: 'members' },
  { name: 'settings', get detail() { return t.roomSettings }, id: 'room-settings' },
  { name: 'export', get detail() { return t.exportAsMarkdown }, id: 'export-markdown' },
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
