import { matchScore } from '@/lib/commands'
import { formatDate } from '@/lib/format'
import type { RoomSummary } from '@/lib/api/types'
import { activeAt } from '@/lib/room-list'
import { t } from '../texts'

/** A line of the list of rooms: the title of a group, or a room. */
export type RailRow = { kind: 'title'; key: string; title: string } | { kind: 'room'; key: string; room: RoomSummary }

/** The rooms whose name has the words that are looked for, in groups by the day of their last message, newest first. */
export function railRows(rooms: readonly RoomSummary[], text: string, now: Date = new Date()): RailRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const rows: RailRow[] = []
  let last = ''
  for (const room of rooms) {
    const name = room.name.toLowerCase()
    if (!words.every((word) => matchScore(name, word) > 0)) continue
    const title = groupOf(new Date(activeAt(room)), now)
    if (title !== last) rows.push({ kind: 'title', key: `group ${title}`, title })
    last = title
    rows.push({ kind: 'room', key: room.id, room })
  }
  return rows
}

const day = 24 * 3600 * 1000

function groupOf(date: Date, now: Date): string {
  const midnight = new Date(now.getFullYear(), now.getMonth(), now.getDate()).getTime()
  const time = date.getTime()
  if (time >= midnight) return t.today
  if (time >= midnight - day) return t.yesterday
  if (time >= midnight - 7 * day) return t.previous7Days
  if (time >= midnight - 30 * day) return t.previous30Days
  return formatDate(date, 'month')
}
