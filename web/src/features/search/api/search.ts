import { infiniteQueryOptions, keepPreviousData, queryOptions } from '@tanstack/react-query'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { SearchResults } from '@/lib/api/types'
import type { Place } from '../model/search-filter'

function search(q: string, place: Place | undefined, cursor: string | undefined, limit: number): Promise<SearchResults> {
  return answerOf(api.GET('/api/search', { params: { query: { q, in: place, cursor, limit } } }))
}

/** Everything that has the words, page by page. */
export function searchQuery(q: string, place: Place | undefined) {
  return infiniteQueryOptions({
    queryKey: queryKeys.search(q, place ?? 'everywhere'),
    queryFn: ({ pageParam }) => search(q, place, pageParam, 30),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ next }) => next ?? undefined,
    placeholderData: keepPreviousData,
  })
}

/** A few hits, while one types. */
export function hitsQuery(q: string) {
  return queryOptions({ queryKey: queryKeys.search(q, 'few'), queryFn: () => search(q, 'messages', undefined, 6), placeholderData: keepPreviousData })
}
