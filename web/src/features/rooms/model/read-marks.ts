import type { RoomState } from '@/feed/state'
import { remember, remembered } from '@/lib/storage'
import { createStore } from '@/lib/store'

/** How far each room was read in this browser. */
type Marks = Readonly<Record<string, number>>

const key = 'read'
export const readMarks = createStore<Marks>(remembered<Marks>(key, {}))

// Another tab of this browser may have read on.
globalThis.addEventListener?.('storage', (event) => {
  if (event.key === `greenroom.${key}`) readMarks.set(remembered<Marks>(key, {}))
})

export function markRead(roomId: string, seq: number): void {
  if ((readMarks.get()[roomId] ?? -1) >= seq) return
  // Read anew: the store of this tab may be behind what another one has written.
  const marks = { ...remembered<Marks>(key, {}), [roomId]: seq }
  remember(key, marks)
  readMarks.set(marks)
}

/** Answers that began after the mark. A room that was never opened here has none: it is new, not unread. */
export function unreadIn(state: RoomState | null, mark: number | undefined): number {
  if (!state || mark === undefined) return 0
  let count = 0
  for (let i = state.order.length - 1; i >= 0; i -= 1) {
    const message = state.messages.get(state.order[i] ?? '')
    if (!message || message.seq <= mark) break
    if (message.author.kind === 'agent') count += 1
  }
  return count
}
