import { matchScore } from '@/lib/commands'
import { formatDate } from '@/lib/format'
import type { RoomSummary } from '@/lib/api/types'
import { activeAt } from '@/lib/room-list'
import { t } from '../texts'

/** A line of the list of rooms: the title of a group, or a room. */
export type RailRow = { kind: 'title'; key: string; title: string } | { kind: 'room'; key: string; room: RoomSummary }

/**
 * The rooms whose name has the words that are looked for: what is pinned, then folders by name, then the rest by the day of the
 * last message, newest first. What is archived is not in the list.
 */
export function railRows(rooms: readonly RoomSummary[], text: string, now: Date = new Date()): RailRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const found = rooms.filter(({ name, archived }) => !archived && words.every((word) => matchScore(name.toLowerCase(), word) > 0))
  const folders = [...new Set(found.flatMap(({ pinned, folder }) => (!pinned && folder) || []))].toSorted((a, b) => a.localeCompare(b))
  return [
    ...section('pinned', t.pinned, found.filter(({ pinned }) => pinned)),
    ...folders.flatMap((folder) => section(`folder ${folder}`, folder, found.filter((room) => !room.pinned && room.folder === folder))),
    ...byDay(found.filter(({ pinned, folder }) => !pinned && !folder), now),
  ]
}

function section(key: string, title: string, rooms: readonly RoomSummary[]): RailRow[] {
  return rooms.length === 0 ? [] : [{ kind: 'title', key, title }, ...rooms.map((room) => ({ kind: 'room' as const, key: room.id, room }))]
}

function byDay(rooms: readonly RoomSummary[], now: Date): RailRow[] {
  const titles = [...new Set(rooms.map((room) => groupOf(new Date(activeAt(room)), now)))]
  return titles.flatMap((title) => section(`group ${title}`, title, rooms.filter((room) => groupOf(new Date(activeAt(room)), now) === title)))
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
