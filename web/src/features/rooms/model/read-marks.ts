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
  // Reads again: another tab may have written newer marks.
  const marks = { ...remembered<Marks>(key, {}), [roomId]: seq }
  remember(key, marks)
  readMarks.set(marks)
}

/** Whether the newest answer came after the mark. A room that was never opened here is new, not unread. */
export function isUnread(answer: number, mark: number | undefined): boolean {
  return mark !== undefined && answer > mark
}
