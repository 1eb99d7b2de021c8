import type { MemberSettings, Room } from '@/lib/api/types'
import { t } from '../texts'

type Flag = Exclude<keyof MemberSettings, 'priority' | 'model' | 'thinking'>

const noSettings: MemberSettings = { priority: 0, interrupt_every_turn: false, transparent: false, final_response: false, critic: false, aware_only: false, model: null, thinking: null }

/** The settings of an agent in a room. The server has those of the agents that somebody has changed. */
export function settingsIn(room: Pick<Room, 'policy'>, agentId: string): MemberSettings {
  return { ...noSettings, ...room.policy.members[agentId] }
}

/** What a room has chosen instead of the agent's own model and effort, in a few words. */
export function modelWords({ model, thinking }: MemberSettings): string[] {
  return [...(model ? [model] : []), ...(thinking ? [effortWord(thinking)] : [])]
}

export function effortWord(effort: NonNullable<MemberSettings['thinking']>): string {
  return { off: t.effortOff, low: t.effortLow, medium: t.effortMedium, high: t.effortHigh }[effort]
}

/** What can be said of one agent in one room, and what it means. */
export function memberFlags(): { flag: Flag; label: string; detail: string }[] {
  return [
    { flag: 'interrupt_every_turn', label: t.flagEveryTurn, detail: t.flagEveryTurnDetail },
    { flag: 'transparent', label: t.flagTransparent, detail: t.flagTransparentDetail },
    { flag: 'final_response', label: t.flagLastWord, detail: t.flagLastWordDetail },
    { flag: 'critic', label: t.flagCritic, detail: t.flagCriticDetail },
    { flag: 'aware_only', label: t.flagWhenNamed, detail: t.flagWhenNamedDetail },
  ]
}

/** What is set, in a few words each. */
export function flagWords(settings: MemberSettings): string[] {
  const priority = settings.priority === 0 ? [] : [t.priorityIs(settings.priority)]
  return [...priority, ...modelWords(settings), ...memberFlags().flatMap(({ flag, label }) => (settings[flag] ? [label] : []))]
}
