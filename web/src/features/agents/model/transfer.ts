import type { Agent, AgentSpec } from '@/lib/api/types'
import { withoutRecord } from './draft'
import { t } from '../texts'

/** The name of the format, which identifies the file. */
const format = 'greenroom.agents'
const version = 1
const mostAgents = 200

export function toFile(agents: readonly Agent[]): string {
  return `${JSON.stringify({ format, version, agents: agents.map(withoutRecord) }, null, 2)}\n`
}

export type Reading = { agents: AgentSpec[] } | { problem: string }

/** Accepts the output of `toFile`, a single agent, or a list of agents. The server validates each. */
export function fromFile(text: string): Reading {
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch {
    return { problem: t.notValidJsonExportAnAgentFrom }
  }
  if (isObject(content) && content.format === format && Number(content.version) > version) {
    return { problem: t.thisFileIsFromANewerVersion }
  }
  const found = isObject(content) && Array.isArray(content.agents) ? content.agents : Array.isArray(content) ? content : [content]
  const agents = found.filter(isObject).filter(({ name, provider }) => typeof name === 'string' && typeof provider === 'string')
  if (agents.length === 0) return { problem: t.noAgentsFoundAnAgentNeedsAt }
  if (agents.length > mostAgents) return { problem: t.theFileHasAgentsAtMostCan(agents.length, mostAgents) }
  return { agents: agents.map((agent) => withoutRecord(agent) as unknown as AgentSpec) }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
