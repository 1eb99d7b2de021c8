import type { components } from '@/lib/api/schema'
import type { PolicyList } from './draft'

type Schemas = components['schemas']

export type Effective = Schemas['Effective']
export type EffectiveServer = Schemas['EffectiveServer']
export type EffectiveTool = Schemas['EffectiveTool']
type Tier = Schemas['McpTier']

/** Where a server comes from, for people. */
export function originOf({ tier, skill, source }: Pick<EffectiveServer, 'tier' | 'skill' | 'source'>): string {
  const where = tierWords({ tier, skill })
  if (source === 'file') return `${where}, defined in the server’s own file`
  return source === 'database' ? `${where}, defined on the page of MCP servers` : where
}

export function tierWords({ tier, skill }: Tier): string {
  switch (tier) {
    case 'skill':
      return !skill ? 'brought by a skill' : `brought by the skill ${skill}`
    case 'agent':
      return 'named by this agent'
    default:
      return 'from the project’s .mcp.json'
  }
}

export const verdictWords: Record<PolicyList, string> = { allow: 'without asking', ask: 'asks first', deny: 'never' }

/** One that is to be used and does not work now is as good as none. */
export function stateOf({ state, problem }: Pick<EffectiveServer, 'state' | 'problem'>): EffectiveServer['state'] {
  return state === 'used' && problem ? 'problem' : state
}

export const stateWords: Record<EffectiveServer['state'], string> = {
  used: 'in use',
  disabled: 'off',
  problem: 'cannot be used',
  untrusted: 'not trusted yet',
}
