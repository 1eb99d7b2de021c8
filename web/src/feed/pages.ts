import type { History } from '@/lib/api/types'
import type { FeedApi } from './feed-api'
import { spanOf, withEarlier, withOlder, withSkipped } from './snapshot'
import type { RoomState } from './state'

/** As many messages as one request may ask for. */
const mostInPage = 1000

/** A page of history, and how it is joined to what is loaded. */
export interface LoadedPage {
  history: History
  join: (state: RoomState, page: RoomState) => RoomState
}

/** Reads a page that belongs to a room; `null` if there is none. */
export type ReadPage = (api: FeedApi, state: RoomState, pageSize: number) => Promise<LoadedPage | null>

/** Whether the same messages are loaded; a page that was asked for before they changed does not fit any more. */
export function isSameRange(a: RoomState, b: RoomState): boolean {
  return a.loadedFrom === b.loadedFrom && a.skipped === b.skipped
}

export const olderPage: ReadPage = async (api, state, pageSize) => {
  if (state.loadedFrom === 0) return null
  return { history: await api.history(state.roomId, pageSize, state.loadedFrom), join: withOlder }
}

/** The page in the middle of which a message stands; where messages are dense, the one that ends with it. */
export function pageAround(seq: number): ReadPage {
  return async (api, state, pageSize) => {
    if (state.loadedFrom <= seq) return null
    let until = Math.min(state.loadedFrom, seq + Math.ceil(spanOf(state, pageSize) / 2))
    let history = await api.history(state.roomId, pageSize, until)
    if ((history.messages[0]?.seq ?? 0) > seq) {
      until = seq + 1
      history = await api.history(state.roomId, pageSize, until)
    }
    return { history, join: (current, page) => withEarlier(current, page, until) }
  }
}

/** The messages right after where some were skipped. */
export const skippedPage: ReadPage = async (api, state, pageSize) => {
  const { skipped } = state
  if (!skipped) return null
  for (let span = spanOf(state, pageSize); ; span = Math.max(1, Math.floor(span / 4))) {
    const until = Math.min(skipped.before, skipped.after + 1 + span)
    const history = await api.history(state.roomId, mostInPage, until, skipped.after)
    // A page has the newest messages of its range: with more than fit, the first ones would be missing.
    if (!history.has_more || span === 1) return { history, join: (current, page) => withSkipped(current, page, until) }
  }
}
