import { type ReactNode, createContext, use, useSyncExternalStore } from 'react'
import type { ConnectionStatus } from './connection'
import type { Feed } from './feed'
import type { RoomView } from './room-view'
import type { Message, RunState } from './state'

const FeedContext = createContext<Feed | null>(null)

export function FeedProvider({ feed, children }: { feed: Feed; children: ReactNode }): ReactNode {
  return <FeedContext value={feed}>{children}</FeedContext>
}

export function useFeed(): Feed {
  const feed = use(FeedContext)
  if (!feed) throw new Error('useFeed needs a FeedProvider above it')
  return feed
}

export function useConnection(): ConnectionStatus {
  const feed = useFeed()
  return useSyncExternalStore(feed.subscribe, feed.status)
}

/** A piece of a room. The selector must give back the same object while that piece has not changed. */
export function useRoom<T>(roomId: string, select: (view: RoomView) => T): T {
  const room = useFeed().room(roomId)
  return useSyncExternalStore(room.subscribe, () => select(room.snapshot()))
}

export function useMessage(roomId: string, id: string): Message | undefined {
  return useRoom(roomId, (view) => view.state?.messages.get(id))
}

export function useRun(roomId: string, id: string | null): RunState | undefined {
  return useRoom(roomId, (view) => (id === null ? undefined : view.state?.runs.get(id)))
}
