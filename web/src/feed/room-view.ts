import type { SocketRequest } from '@/lib/api/types'
import type { Clock } from './clock'
import type { FeedApi } from './feed-api'
import type { RoomState } from './state'

export interface RoomView {
  phase: 'loading' | 'live' | 'gone' | 'failed'
  problem: string | null
  isLoadingOlder: boolean
  state: RoomState | null
}

export interface RoomContext {
  api: FeedApi
  clock: Clock
  /** Messages that are read at once. */
  pageSize: number
  send(request: SocketRequest): void
  /** Asks for `flush` to be called soon, together with others. */
  schedule(room: { flush(): void }): void
}
