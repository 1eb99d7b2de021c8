import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Agent, Run } from '@/lib/api/types'
import type { Effective } from '../model/effective'
import type { Series } from '../model/figures'
import { t } from '../texts'

export function agentQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.agents.one(id),
    queryFn: (): Promise<Agent> => answerOf(api.GET('/api/agents/{id}', { params: { path: { id } } })),
  })
}

/** Enough to know who was at work lately. */
export const recentRunsQuery = queryOptions({
  queryKey: queryKeys.runs.recent,
  queryFn: async (): Promise<Run[]> => (await answerOf(api.GET('/api/runs', { params: { query: { limit: 500 } } }))).runs,
})

const days = 30
export const usagePeriod = (): string => t.lastDays(days)

export const usageByAgentQuery = queryOptions({
  queryKey: queryKeys.usage.byAgent,
  queryFn: async (): Promise<readonly Series[]> => {
    const from = new Date(Date.now() - days * 86_400_000).toISOString()
    return (await answerOf(api.GET('/api/usage', { params: { query: { by: 'agent', bucket: 'day', from } } }))).series
  },
})

export const mcpServerNamesQuery = queryOptions({
  queryKey: queryKeys.mcpServers.names,
  queryFn: async () => [...new Set((await answerOf(api.GET('/api/mcp-servers'))).servers.map(({ name }) => name))],
})

/** The request starts the MCP servers, so it is not refetched automatically. */
export function effectiveQuery(agent: Agent, room: string | null) {
  return queryOptions({
    // What it has changes with its settings.
    queryKey: queryKeys.agents.effective(agent.id, agent.updated_at, room),
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    queryFn: (): Promise<Effective> => answerOf(api.GET('/api/agents/{id}/effective', { params: { path: { id: agent.id }, query: room === null ? {} : { room } } })),
  })
}
