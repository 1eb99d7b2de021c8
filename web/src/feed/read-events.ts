import type { RoomEvent } from './event'
import type { FeedApi } from './feed-api'
import { foldRoom, hasGap } from './fold-room'
import type { RoomState, RunState } from './state'

const pageLimit = 1000
const ends: ReadonlySet<string> = new Set(['run_completed', 'run_failed', 'run_cancelled', 'run_interrupted'])

/** All events from a run's first to its end, or to wherever the reader has got meanwhile. */
export async function readRun(
  api: FeedApi,
  roomId: string,
  run: Pick<RunState, 'id' | 'queuedSeq'>,
  reader: () => Pick<RoomState, 'epoch' | 'seq'>,
): Promise<RoomEvent[]> {
  const events: RoomEvent[] = []
  let after = (run.queuedSeq ?? 1) - 1
  for (;;) {
    const read = await api.events(roomId, `${reader().epoch}-${after}`, pageLimit)
    events.push(...read.events)
    after = read.events.at(-1)?.seq ?? after
    const hasEnd = read.events.some((event) => event.run_id === run.id && ends.has(event.type))
    if (hasEnd || after >= reader().seq || read.events.length === 0) return events
  }
}

/** Reads pages until nothing is missing up to the head that they name. */
export async function fillHoles(
  api: FeedApi,
  get: () => RoomState | null,
  put: (state: RoomState) => void,
): Promise<void> {
  for (;;) {
    const before = get()
    if (!before) return
    const read = await api.events(before.roomId, `${before.epoch}-${before.seq}`, pageLimit)
    const current = get()
    if (!current || current.epoch !== read.epoch) return
    const after = foldRoom({ ...current, head: Math.max(current.head, read.head) }, read.events)
    put(after)
    if (read.events.length === 0 || (after.seq >= read.head && !hasGap(after))) return
  }
}

/** Folds on from where a page was read to wherever the reader has got meanwhile. */
export async function catchUp(api: FeedApi, page: RoomState, reader: () => Pick<RoomState, 'seq'>): Promise<RoomState> {
  let state = page
  while (state.seq < reader().seq) {
    const read = await api.events(state.roomId, `${state.epoch}-${state.seq}`, pageLimit)
    const { seq } = reader()
    state = foldRoom(state, read.events.filter((event) => event.seq <= seq))
    if (read.events.length === 0) break
  }
  return state
}
