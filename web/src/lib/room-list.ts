import type { Room, RoomSummary, SocketMessage } from './api/types'

/** The messages that change the list of rooms. */
export type RoomListMessage = Extract<SocketMessage, { type: 'rooms' | 'room' | 'room_gone' }>

/** A room without activity. */
export function summaryOf(room: Room): RoomSummary {
  return { busy: false, waiting: false, failed: false, last_message: null, ...room }
}

export function applyToRooms(known: readonly RoomSummary[], message: RoomListMessage): RoomSummary[] {
  switch (message.type) {
    case 'rooms':
      return message.rooms.toSorted(byActivity)
    case 'room':
      return [message.room, ...known.filter((room) => room.id !== message.room.id)].toSorted(byActivity)
    case 'room_gone':
      return known.filter((room) => room.id !== message.id)
  }
}

/**
 * A requested list may be older than the messages that arrived during the request: `before` is the list when it was
 * requested, `known` the list now.
 */
export function newestOf(before: readonly RoomSummary[], known: readonly RoomSummary[], received: readonly RoomSummary[]): RoomSummary[] {
  const idsOf = (rooms: readonly RoomSummary[]): Set<string> => new Set(rooms.map(({ id }) => id))
  const [knownBefore, knownNow, listed] = [idsOf(before), idsOf(known), idsOf(received)]
  const isGone = ({ id }: RoomSummary): boolean => knownBefore.has(id) && !knownNow.has(id)
  const changed = new Map(known.filter((room) => !before.includes(room)).map((room) => [room.id, room]))
  const newer = (room: RoomSummary): RoomSummary => {
    const other = changed.get(room.id)
    return other && other.head >= room.head ? other : room
  }
  const created = [...changed.values()].filter(({ id }) => !listed.has(id))
  return [...received.filter((room) => !isGone(room)).map(newer), ...created].toSorted(byActivity)
}

/** Newest first, by the time that the list shows. */
function byActivity(a: RoomSummary, b: RoomSummary): number {
  const [one, other] = [activeAt(a), activeAt(b)]
  if (one !== other) return one < other ? 1 : -1
  return a.id < b.id ? 1 : -1
}

/** When something was said last; a room without messages is as old as its last change, a branch no older than itself. */
export function activeAt({ last_message, created_at, updated_at }: RoomSummary): string {
  const said = last_message?.created_at ?? updated_at
  return said > created_at ? said : created_at
}
