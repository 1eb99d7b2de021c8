import type { components } from '@/lib/api/schema'
import type { PolicyList } from './draft'
import { t } from '../texts'

type Schemas = components['schemas']

export type Effective = Schemas['Effective']
export type EffectiveServer = Schemas['EffectiveServer']
export type EffectiveTool = Schemas['EffectiveTool']
type Tier = Schemas['McpTier']

/** Where a server comes from, for people. */
export function originOf({ tier, skill, source }: Pick<EffectiveServer, 'tier' | 'skill' | 'source'>): string {
  const where = tierWords({ tier, skill })
  if (source === 'file') return t.definedInTheServersOwnFile(where)
  return source === 'database' ? t.definedOnThePageOfMcpServers(where) : where
}

export function tierWords({ tier, skill }: Tier): string {
  switch (tier) {
    case 'skill':
      return !skill ? t.broughtByASkill : t.broughtByTheSkill(skill)
    case 'agent':
      return t.namedByThisAgent
    default:
      return t.fromTheProjectsMcpJson
  }
}

export const verdictWords: Record<PolicyList, string> = { get allow() { return t.withoutAsking }, get ask() { return t.asksFirst }, deny: 'never' }

/** One that is to be used and does not work now is as good as none. */
export function stateOf({ state, problem }: Pick<EffectiveServer, 'state' | 'problem'>): EffectiveServer['state'] {
  return state === 'used' && problem ? 'problem' : state
}

export const stateWords: Record<EffectiveServer['state'], string> = {
  get used() { return t.inUse },
  get disabled() { return t.switchedOff },
  get problem() { return t.cannotBeUsed },
  get untrusted() { return t.notTrustedYet },
}
