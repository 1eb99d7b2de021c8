import type { PolicyList } from './draft'

/** What `GET /api/agents/{id}/effective` says. */
export interface Effective {
  provider: { name: string; mcp: boolean }
  servers: readonly EffectiveServer[]
  built_in: readonly EffectiveTool[]
}

export interface EffectiveServer {
  name: string
  tier: Tier
  skill: string | null
  source: 'file' | 'database' | 'skill' | 'project'
  transport: string | null
  state: 'used' | 'disabled' | 'problem' | 'untrusted'
  problem: { code: string; message: string } | null
  shadowed: readonly { tier: Tier; skill: string | null }[]
  tools: readonly EffectiveTool[] | null
}

export interface EffectiveTool {
  name: string
  full_name: string
  description?: string | null
  verdict: PolicyList
  remembered: boolean
  quarantined?: string | null
}

type Tier = 'skill' | 'agent' | 'project'

/** Where a server comes from, for people. */
export function originOf({ tier, skill, source }: Pick<EffectiveServer, 'tier' | 'skill' | 'source'>): string {
  const where = tierWords({ tier, skill })
  if (source === 'file') return `${where}, defined in the server’s own file`
  return source === 'database' ? `${where}, defined on the page of MCP servers` : where
}

export function tierWords({ tier, skill }: { tier: Tier; skill: string | null }): string {
  switch (tier) {
    case 'skill':
      return skill === null ? 'brought by a skill' : `brought by the skill ${skill}`
    case 'agent':
      return 'named by this agent'
    case 'project':
      return 'from the project’s .mcp.json'
  }
}

export const verdictWords: Record<PolicyList, string> = { allow: 'without asking', ask: 'asks first', deny: 'never' }

export const stateWords: Record<EffectiveServer['state'], string> = {
  used: 'in use',
  disabled: 'switched off',
  problem: 'cannot be used',
  untrusted: 'not trusted yet',
}
