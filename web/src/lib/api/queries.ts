import { QueryClient, queryOptions } from '@tanstack/react-query'
import { ApiError, answerOf, api } from './client'
import type { Agent, Provider, Room } from './types'

export function createQueryClient(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 10_000,
        retry: (failures, error) => failures < 3 && error instanceof ApiError && error.isOffline,
      },
    },
  })
}

/** The order is the server's: newest activity first. Rooms made elsewhere show up within the interval. */
export const roomsQuery = queryOptions({
  queryKey: ['rooms'],
  queryFn: async (): Promise<Room[]> => (await answerOf(api.GET('/api/rooms', { params: { query: { limit: 500 } } }))).rooms,
  refetchInterval: 20_000,
})

export const agentsQuery = queryOptions({
  queryKey: ['agents'],
  queryFn: async (): Promise<Agent[]> => (await answerOf(api.GET('/api/agents'))).agents,
})

/** Who can answer here, and whether this machine has what they need. */
export const providersQuery = queryOptions({
  queryKey: ['providers'],
  staleTime: 60_000,
  queryFn: async (): Promise<Provider[]> => (await answerOf(api.GET('/api/providers'))).providers,
})
