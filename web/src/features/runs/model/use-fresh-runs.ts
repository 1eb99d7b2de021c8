import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'

const pause = 1000

/** Refetches the list when rooms change: the room feed is live, and each run belongs to a room. */
export function useFreshRuns(): void {
  const queries = useQueryClient()
  const { dataUpdatedAt } = useQuery(roomsQuery)
  const known = useRef(dataUpdatedAt)
  useEffect(() => {
    if (known.current === dataUpdatedAt) return
    const timer = setTimeout(() => void queries.invalidateQueries({ queryKey: queryKeys.runs.lists }), known.current + pause - dataUpdatedAt)
    known.current = dataUpdatedAt
    return () => clearTimeout(timer)
  }, [queries, dataUpdatedAt])
}
