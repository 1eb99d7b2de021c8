import { QueryClient, queryOptions } from '@tanstack/react-query'
import { newestOf, summaryOf } from '../room-list'
import { ApiError, answerOf, api } from './client'
import { queryKeys } from './query-keys'
import type { Agent, BillingStatus, Project, ProjectFolder, Provider, RoomSummary, SkillList } from './types'

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < 3 && error instanceof ApiError && error.isOffline,
      },
      // A write without a network fails at once instead of waiting: the server may be on this machine, and a late write surprises.
      mutations: { networkMode: 'always' },
    },
  })
}

/** Read once and after this page's own changes; all other changes come through the feed. */
export const roomsQuery = queryOptions({
  queryKey: queryKeys.rooms.all,
  staleTime: Infinity,
  queryFn: async ({ client, queryKey }): Promise<RoomSummary[]> => {
    const known = (): RoomSummary[] => client.getQueryData<RoomSummary[]>(queryKey) ?? []
    const before = known()
    const { rooms } = await answerOf(api.GET('/api/rooms', { params: { query: { limit: 500 } } }))
    return newestOf(before, known(), rooms.map(summaryOf))
  },
})

export const agentsQuery = queryOptions({
  queryKey: queryKeys.agents.all,
  queryFn: async (): Promise<Agent[]> => (await answerOf(api.GET('/api/agents'))).agents,
})

/** Who can answer here, and whether this machine has what they need. */
export const providersQuery = queryOptions({
  queryKey: queryKeys.providers,
  staleTime: 60_000,
  queryFn: async (): Promise<Provider[]> => (await answerOf(api.GET('/api/providers'))).providers,
})

export const projectsQuery = queryOptions({
  queryKey: queryKeys.projects.all,
  queryFn: async (): Promise<Project[]> => (await answerOf(api.GET('/api/projects'))).projects,
})

export function projectQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.projects.one(id),
    queryFn: (): Promise<Project> => answerOf(api.GET('/api/projects/{id}', { params: { path: { id } } })),
  })
}

export function projectFolderQuery(id: string, path: string) {
  return queryOptions({
    queryKey: queryKeys.projects.folder(id, path),
    queryFn: (): Promise<ProjectFolder> => answerOf(api.GET('/api/projects/{id}/files', { params: { path: { id }, query: { path } } })),
  })
}

export const skillsQuery = queryOptions({
  queryKey: queryKeys.skills.list,
  queryFn: (): Promise<SkillList> => answerOf(api.GET('/api/skills')),
})

/** The budgets, what is spent of each, and whether the user may start runs. */
export const billingQuery = queryOptions({
  queryKey: queryKeys.billing,
  queryFn: (): Promise<BillingStatus> => answerOf(api.GET('/api/billing/status')),
})
