import { describe, expect, it } from 'vitest'
import type { RoomSummary } from './api/types'
import { applyToRooms, newestOf, summaryOf } from './room-list'

function room(id: string, minute: number, more: Partial<RoomSummary> = {}): RoomSummary {
  const at = `2026-01-01T00:0${minute}:00Z`
  return { ...summaryOf({ id, name: id, agents: [], policy: { when_busy: 'enqueue' } as RoomSummary['policy'], head: minute, created_at: '2026-01-01T00:00:00Z', updated_at: at }), ...more }
}

const ids = (rooms: readonly RoomSummary[]): string[] => rooms.map(({ id }) => id)

describe('the list of rooms', () => {
  const known = [room('b', 2), room('a', 1)]

  it('is what the server says it is', () => {
    expect(ids(applyToRooms(known, { type: 'rooms', rooms: [room('c', 3), room('d', 4)] }))).toEqual(['d', 'c'])
  })

  it('has the room in which something happened first', () => {
    const list = applyToRooms(known, { type: 'room', room: room('a', 5, { busy: true }) })
    expect(ids(list)).toEqual(['a', 'b'])
    expect(list[0]?.busy).toBe(true)
  })

  it('b7: is in the order of the times that it shows, whatever else was changed', () => {
    const said = (minute: number): RoomSummary['last_message'] => ({ seq: 1, author: { kind: 'person', name: 'local' }, text: '', created_at: `2026-01-01T00:0${minute}:00Z` })
    const renamed = room('renamed', 9, { last_message: said(1) })
    expect(ids(applyToRooms([renamed], { type: 'room', room: room('said', 3, { last_message: said(3) }) }))).toEqual(['said', 'renamed'])
  })

  it('has a branch where it was made, not where its copied messages were', () => {
    const last_message: RoomSummary['last_message'] = { seq: 1, author: { kind: 'person', name: 'local' }, text: '', created_at: '2025-01-01T00:00:00Z' }
    const branch = { ...room('branch', 1, { last_message }), created_at: '2026-06-01T00:00:00Z' }
    expect(ids(applyToRooms(known, { type: 'room', room: branch }))[0]).toBe('branch')
  })

  it('learns of rooms made elsewhere, and forgets those deleted there', () => {
    expect(ids(applyToRooms(known, { type: 'room', room: room('new', 9) }))).toEqual(['new', 'b', 'a'])
    expect(ids(applyToRooms(known, { type: 'room_gone', id: 'b' }))).toEqual(['a'])
  })

  describe('that was asked for', () => {
    const before = [room('b', 2), room('a', 1)]

    it('does not go back behind what has happened since', () => {
      const waits = applyToRooms(before, { type: 'room', room: room('a', 7, { waiting: true }) })
      const list = newestOf(before, waits, [room('b', 2), room('a', 1)])
      expect(ids(list)).toEqual(['a', 'b'])
      expect(list[0]?.waiting).toBe(true)
      const renamed = applyToRooms(before, { type: 'room', room: room('a', 1, { name: 'Renamed' }) })
      expect(newestOf(before, renamed, before).map(({ name }) => name)).toEqual(['b', 'Renamed'])
    })

    it('keeps a room made since, and none that is gone since', () => {
      const made = applyToRooms(before, { type: 'room', room: room('new', 9) })
      expect(ids(newestOf(before, made, before))).toEqual(['new', 'b', 'a'])
      const gone = applyToRooms(before, { type: 'room_gone', id: 'b' })
      expect(ids(newestOf(before, gone, [room('b', 2), room('a', 1)]))).toEqual(['a'])
    })

    it('says what was not heard of: that a room is gone, or new, or has another name', () => {
      expect(ids(newestOf(before, before, [room('c', 3), room('a', 1)]))).toEqual(['c', 'a'])
      expect(newestOf(before, before, [room('a', 1, { name: 'Renamed' })])[0]?.name).toBe('Renamed')
    })
  })
})
