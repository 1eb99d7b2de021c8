import type { Agent } from '@/lib/api/types'
import type { Skill } from './skill'
import { complete, completionAt } from './mentions'
import { skillsAt } from './skill-command'
import { type SlashCommand, commandsAt } from './slash-commands'
import { t } from '../texts'

export interface Suggestion {
  key: string
  name: string
  detail: string | null
  chosen: { kind: 'agent'; text: string; caret: number } | { kind: 'skill'; skill: Skill } | { kind: 'command'; command: SlashCommand }
}

export interface Suggestions {
  label: string
  list: readonly Suggestion[]
}

/** What could be meant by what is being typed just before the caret: an agent after an `@`, a skill or a command after a first `/`. */
export function suggestionsAt(text: string, caret: number, agents: readonly Agent[], skills: readonly Skill[]): Suggestions | null {
  const called = (skillsAt(text, caret, skills)?.matches ?? []).map((skill) => ({ key: skill.name, name: `/${skill.name}`, detail: skill.description, chosen: { kind: 'skill' as const, skill } }))
  const commands = commandsAt(text, caret, skills).map((command) => ({ key: `command-${command.name}`, name: `/${command.name}`, detail: command.detail, chosen: { kind: 'command' as const, command } }))
  if (called.length + commands.length > 0) return { label: called.length > 0 ? t.skillsAndCommands : t.commands, list: [...called, ...commands] }
  const named = completionAt(text, caret, agents)
  if (!named) return null
  const list = named.matches.map((agent) => {
    const done = complete(text, named, caret, agent)
    return { key: agent.id, name: agent.name, detail: null, chosen: { kind: 'agent' as const, ...done } }
  })
  return { label: t.agentsInThisRoom, list }
}
