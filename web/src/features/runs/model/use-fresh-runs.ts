import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { roomsQuery } from '@/lib/api/queries'

const pause = 1000

/** Reads the list again when the rooms have changed, which are told of live: a run begins, waits and ends in one. */
export function useFreshRuns(): void {
  const queries = useQueryClient()
  const { dataUpdatedAt } = useQuery(roomsQuery)
  const known = useRef(dataUpdatedAt)
  useEffect(() => {
    if (known.current === dataUpdatedAt) return
    const timer = setTimeout(() => void queries.invalidateQueries({ queryKey: ['runs', 'list'] }), known.current + pause - dataUpdatedAt)
    known.current = dataUpdatedAt
    return () => clearTimeout(timer)
  }, [queries, dataUpdatedAt])
}
