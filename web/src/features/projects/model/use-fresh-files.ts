import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect } from 'react'
import { useFeed } from '@/feed/use-feed'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import type { RoomSummary } from '@/lib/api/types'

/** The server tells the newest rooms of a project; following a few is enough. */
const mostFollowed = 5
/** A program changes many files in a moment; they are read once. */
const pauseMs = 300

/** Reads the files of a project again when one was changed, and when a run in one of its rooms begins or ends. Returns its rooms. */
export function useFreshFiles(projectId: string): readonly RoomSummary[] {
  const feed = useFeed()
  const queries = useQueryClient()
  const rooms = (useQuery(roomsQuery).data ?? []).filter((room) => room.project_id === projectId)
  const followed = rooms.slice(0, mostFollowed).map(({ id }) => id).join(' ')
  const busy = rooms.filter((room) => room.busy).map(({ id }) => id).join(' ')
  const refresh = useCallback(() => void queries.invalidateQueries({ queryKey: queryKeys.projects.files(projectId) }), [queries, projectId])

  useEffect(() => {
    const ids = followed.split(' ').filter(Boolean)
    for (const id of ids) feed.room(id).open()
    let timer: ReturnType<typeof setTimeout> | undefined
    const stop = feed.onFileChanged((roomId) => {
      if (!ids.includes(roomId)) return
      clearTimeout(timer)
      timer = setTimeout(refresh, pauseMs)
    })
    return () => {
      clearTimeout(timer)
      stop()
    }
  }, [feed, followed, refresh])

  useEffect(refresh, [busy, refresh])
  return rooms
}
