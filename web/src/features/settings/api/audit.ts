import { infiniteQueryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { AuditFilter } from '../model/audit-filter'

export interface AuditEntry {
  id: number
  created_at: string
  action: string
  object: string
  /** The id of the object or its name; of a refused request, the method and the route. */
  object_id: string
  room_id?: string | null
  user_id?: string | null
  user_name?: string | null
  role: string
  credential: string
  credential_id?: string | null
  address?: string | null
  /** How often it happened within a minute. */
  count: number
  detail?: unknown
}

interface AuditPage {
  entries: AuditEntry[]
  next?: string | null
}

// The types of the API are generated from its document, which does not list this endpoint yet.
type AuditRequest = (path: '/api/audit', init: { params: { query: object } }) => Promise<{ data?: AuditPage; error?: unknown; response: Response }>

export function auditQuery({ action, object, user }: AuditFilter) {
  return infiniteQueryOptions({
    queryKey: queryKeys.audit(action ?? '', object ?? '', user ?? ''),
    queryFn: ({ pageParam }): Promise<AuditPage> => {
      const query = { limit: 50, before: pageParam ?? undefined, action, object, user_id: user }
      return answerOf((api.GET as unknown as AuditRequest)('/api/audit', { params: { query } }))
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? undefined,
  })
}
