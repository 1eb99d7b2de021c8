import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { NamedRun } from '@/lib/api/types'

/** The runs of all rooms that wait for a person, those that wait longest first. */
export const waitingRunsQuery = queryOptions({
  queryKey: queryKeys.runs.waiting,
  refetchInterval: 15_000,
  queryFn: async (): Promise<NamedRun[]> => {
    const { runs } = await answerOf(api.GET('/api/runs', { params: { query: { status: 'waiting_for_approval', limit: 100 } } }))
    return runs.toReversed()
  },
})
