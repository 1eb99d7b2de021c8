import { type UseQueryResult, useQuery, useQueryClient } from '@tanstack/react-query'
import { unfinished } from '@/feed/rows'
import { useRoom } from '@/feed/use-feed'
import type { Tape } from '@/lib/api/types'
import { tapeQuery } from '../api/tape'

interface RoomTape extends Pick<UseQueryResult<Tape>, 'data'> {
  /** Takes over what a command returned. */
  keep: (tape: Tape) => void
  /** Reads it again, such as after a command that came too late. */
  refresh: () => Promise<void>
}

/** What runs, waits and is planned in a room; read again whenever one of its runs changes. */
export function useTape(roomId: string, isWanted = true): RoomTape {
  const queries = useQueryClient()
  const runs = useRoom(roomId, (view) => (view.state ? unfinished(view.state.runs).map(({ id, status }) => `${id} ${status}`).join() : ''))
  const query = tapeQuery(roomId, runs)
  const { data } = useQuery({ ...query, enabled: isWanted })
  return {
    data,
    keep: (tape) => void queries.setQueryData(query.queryKey, tape),
    refresh: () => queries.invalidateQueries(query),
  }
}
