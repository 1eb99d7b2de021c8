import { infiniteQueryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { AuditFilter } from '../model/audit-filter'

export function auditQuery({ action, object, user }: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: queryKeys.audit(action ?? '', object ?? '', user ?? ''),
    queryFn: ({ pageParam }) => {
      const query = { limit: 50, before: pageParam ?? undefined, action, object, user_id: user }
      return answerOf(api.GET('/api/audit', { params: { query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? undefined,
  })
}
