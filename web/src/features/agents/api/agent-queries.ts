import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { readIfThere } from '@/lib/api/request'
import type { Agent, Run } from '@/lib/api/types'
import type { Effective } from '../model/effective'
import type { Series } from '../model/figures'

export function agentQuery(id: string) {
  return queryOptions({
    queryKey: ['agents', id],
    queryFn: (): Promise<Agent> => answerOf(api.GET('/api/agents/{id}', { params: { path: { id } } })),
  })
}

/** Enough to know who was at work lately. */
export const recentRunsQuery = queryOptions({
  queryKey: ['runs', 'recent'],
  queryFn: async (): Promise<Run[]> => (await answerOf(api.GET('/api/runs', { params: { query: { limit: 500 } } }))).runs,
})

const days = 30
export const usagePeriod = `the last ${days} days`

export const usageByAgentQuery = queryOptions({
  queryKey: ['usage', 'by-agent'],
  queryFn: async (): Promise<readonly Series[]> => {
    const from = new Date(Date.now() - days * 86_400_000).toISOString()
    return (await answerOf(api.GET('/api/usage', { params: { query: { by: 'agent', bucket: 'day', from } } }))).series
  },
})

/** Names to choose from; null where the server has no such list. */
export const skillNamesQuery = queryOptions({
  queryKey: ['skills', 'to give'],
  queryFn: async () => {
    const known = await readIfThere<{ skills: Named[]; folders?: Named[] }>('/api/skills')
    return known && names([...known.skills, ...(known.folders ?? [])])
  },
})

export const mcpServerNamesQuery = queryOptions({
  queryKey: ['mcp-servers', 'names'],
  queryFn: async () => names((await readIfThere<{ servers: Named[] }>('/api/mcp-servers'))?.servers),
})

interface Named {
  name: string
}

function names(list: readonly Named[] | undefined): string[] | null {
  return list ? [...new Set(list.map(({ name }) => name))] : null
}

/** Null where the server does not say. Asking starts the MCP servers, so it is not asked again by itself. */
export function effectiveQuery(agent: Agent) {
  return queryOptions({
    // What it has changes with its settings.
    queryKey: ['agents', agent.id, 'effective', agent.updated_at],
    staleTime: 60_000,
    refetchOnWindowFocus: false,
    queryFn: () => readIfThere<Effective>(`/api/agents/${agent.id}/effective`),
  })
}
