import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { UsageReport } from '@/lib/api/types'
import type { Bounds, GroupBy } from '../model/usage-filter'

export function usageQuery({ from, to, bucket }: Bounds, by: GroupBy) {
  return queryOptions({
    queryKey: queryKeys.usage.report(by, bucket, from, to),
    queryFn: (): Promise<UsageReport> => answerOf(api.GET('/api/usage', { params: { query: { from, to, by, bucket } } })),
    placeholderData: keepPreviousData,
    staleTime: 20_000,
  })
}
