import { useEffect } from 'react'
import type { RunState } from '@/feed/state'
import { useFeed } from '@/feed/use-feed'

/** Reads all events of a run where more is to be shown than history tells. */
export function useWholeRun(roomId: string, run: RunState | undefined, wantsMore: boolean): void {
  const feed = useFeed()
  const isPoor = run !== undefined && !run.whole && run.queuedSeq !== null
  useEffect(() => {
    // What is missing are details; the answer itself is there, so a failure here is not worth a word.
    if (isPoor && wantsMore) feed.room(roomId).hydrate(run.id).catch(() => {})
  }, [feed, roomId, run?.id, isPoor, wantsMore])
}
