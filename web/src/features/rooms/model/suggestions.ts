import type { Agent } from '@/lib/api/types'
import type { Skill } from './skill'
import { type MentionedFolder, completePath, entriesFor, pathAt } from './file-mentions'
import { type Completion, complete, completionAt } from './mentions'
import { skillsAt } from './skill-command'
import { type SlashCommand, commandsAt } from './slash-commands'
import { t } from '../texts'

const none: Completion = { start: 0, matches: [] }

export interface Suggestion {
  key: string
  name: string
  detail: string | null
  chosen: { kind: 'agent' | 'file'; text: string; caret: number } | { kind: 'skill'; skill: Skill } | { kind: 'command'; command: SlashCommand }
}

export interface Suggestions {
  label: string
  list: readonly Suggestion[]
}

/** What could be meant by what is being typed just before the caret: an agent or a file after an `@`, a skill or a command after a first `/`. */
export function suggestionsAt(text: string, caret: number, agents: readonly Agent[], skills: readonly Skill[], files: MentionedFolder | null = null): Suggestions | null {
  const called = (skillsAt(text, caret, skills)?.matches ?? []).map((skill) => ({ key: skill.name, name: `/${skill.name}`, detail: skill.description, chosen: { kind: 'skill' as const, skill } }))
  const commands = commandsAt(text, caret, skills).map((command) => ({ key: `command-${command.name}`, name: `/${command.name}`, detail: command.detail, chosen: { kind: 'command' as const, command } }))
  if (called.length + commands.length > 0) return { label: called.length > 0 ? t.skillsAndCommands : t.commands, list: [...called, ...commands] }
  const named = completionAt(text, caret, agents)
  const people = (named?.matches ?? []).map((agent) => ({ key: agent.id, name: agent.name, detail: null, chosen: { kind: 'agent' as const, ...complete(text, named ?? none, caret, agent) } }))
  const path = pathAt(text, caret)
  const paths = path ? entriesFor(path, files).map((entry) => ({ key: `file-${entry.name}`, name: entry.kind === 'folder' ? `${entry.name}/` : entry.name, detail: path.folder || null, chosen: { kind: 'file' as const, ...completePath(text, path, caret, entry) } })) : []
  if (people.length + paths.length === 0) return null
  return { label: paths.length > 0 ? t.agentsAndFiles : t.agentsInThisRoom, list: [...people, ...paths] }
}
