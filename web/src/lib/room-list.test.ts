import { describe, expect, it } from 'vitest'
import { type RoomSummary, heardOfRooms, newestOf, summaryOf } from './room-list'

function room(id: string, minute: number, more: Partial<RoomSummary> = {}): RoomSummary {
  const at = `2026-01-01T00:0${minute}:00Z`
  return { ...summaryOf({ id, name: id, agents: [], policy: { when_busy: 'enqueue' }, head: minute, created_at: at, updated_at: at }), ...more }
}

const ids = (rooms: readonly RoomSummary[]): string[] => rooms.map(({ id }) => id)

describe('the list of rooms', () => {
  const known = [room('b', 2), room('a', 1)]

  it('is what the server says it is', () => {
    expect(ids(heardOfRooms(known, { type: 'rooms', rooms: [room('c', 3), room('d', 4)] }))).toEqual(['d', 'c'])
  })

  it('has the room in which something happened first', () => {
    const list = heardOfRooms(known, { type: 'room', room: room('a', 5, { busy: true }) })
    expect(ids(list)).toEqual(['a', 'b'])
    expect(list[0]?.busy).toBe(true)
  })

  it('learns of rooms made elsewhere, and forgets those deleted there', () => {
    expect(ids(heardOfRooms(known, { type: 'room', room: room('new', 9) }))).toEqual(['new', 'b', 'a'])
    expect(ids(heardOfRooms(known, { type: 'room_gone', id: 'b' }))).toEqual(['a'])
  })

  it('does not go back when an answer comes later than what has happened since', () => {
    const heard = [room('a', 7, { waiting: true }), room('gone', 1)]
    const list = newestOf(heard, [room('a', 1), room('b', 2)])
    expect(ids(list)).toEqual(['a', 'b'])
    expect(list[0]?.waiting).toBe(true)
  })
})
