import type { Author, Room } from './api/types'

export interface LastMessage {
  seq: number
  author: Author
  /** Its beginning. */
  text: string
  created_at: string
}

/** A room as a list shows it. */
export interface RoomSummary extends Room {
  busy: boolean
  /** A tool call waits for a person. */
  waiting: boolean
  last_message: LastMessage | null
}

export type RoomsFrame = { type: 'rooms'; rooms: RoomSummary[] } | { type: 'room'; room: RoomSummary } | { type: 'room_gone'; id: string }

/** A room of which no more is known than how it was made. */
export function summaryOf(room: Room): RoomSummary {
  return { busy: false, waiting: false, last_message: null, ...room }
}

export function heardOfRooms(known: readonly RoomSummary[], frame: RoomsFrame): RoomSummary[] {
  switch (frame.type) {
    case 'rooms':
      return frame.rooms.toSorted(byActivity)
    case 'room':
      return [frame.room, ...known.filter((room) => room.id !== frame.room.id)].toSorted(byActivity)
    case 'room_gone':
      return known.filter((room) => room.id !== frame.id)
  }
}

/**
 * A list that was asked for may be older than what was heard while it was on its way: `before` is what was known when
 * it was asked for, `known` what is known now.
 */
export function newestOf(before: readonly RoomSummary[], known: readonly RoomSummary[], asked: readonly RoomSummary[]): RoomSummary[] {
  const idsOf = (rooms: readonly RoomSummary[]): Set<string> => new Set(rooms.map(({ id }) => id))
  const [knownBefore, knownNow, listed] = [idsOf(before), idsOf(known), idsOf(asked)]
  const isGone = ({ id }: RoomSummary): boolean => knownBefore.has(id) && !knownNow.has(id)
  const heard = new Map(known.filter((room) => !before.includes(room)).map((room) => [room.id, room]))
  const newer = (room: RoomSummary): RoomSummary => {
    const other = heard.get(room.id)
    return other && other.head >= room.head ? other : room
  }
  const made = [...heard.values()].filter(({ id }) => !listed.has(id))
  return [...asked.filter((room) => !isGone(room)).map(newer), ...made].toSorted(byActivity)
}

/** Newest first, as the server has it. */
function byActivity(a: RoomSummary, b: RoomSummary): number {
  if (a.updated_at !== b.updated_at) return a.updated_at < b.updated_at ? 1 : -1
  return a.id < b.id ? 1 : -1
}
