import { expect, it } from 'vitest'
import type { RoomSummary } from '@/lib/api/types'
import { railRows } from './rail-rows'

const now = new Date(2026, 10, 17, 12)
const room = (name: string, daysAgo: number): RoomSummary => {
  const time = new Date(2026, 10, 17 - daysAgo, 9).toISOString()
  return { id: name, name, agents: [], head: 1, created_at: time, updated_at: time, busy: false, waiting: false, failed: false, last_message: null } as unknown as RoomSummary
}
const rooms = [room('Parser review', 0), room('Lobby', 1), room('Release notes', 3), room('Data import', 20), room('Old parser', 60)]
const lines = (text: string): string[] => railRows(rooms, text, now).map((row) => (row.kind === 'title' ? `# ${row.title}` : row.room.name))

it('groups rooms by day', () => {
  expect(lines('')).toEqual(['# Today', 'Parser review', '# Yesterday', 'Lobby', '# Previous 7 days', 'Release notes', '# Previous 30 days', 'Data import', '# September 2026', 'Old parser'])
})

it('pinned rooms come first, then folders by name, and archived ones not at all', () => {
  const placed = [{ ...room('Old plan', 40), pinned: true }, { ...room('B notes', 1), folder: 'work' }, { ...room('A notes', 0), folder: 'Home' }, { ...room('Gone', 0), archived: true }, room('Lobby', 1)]
  expect(railRows(placed, '', now).map((row) => (row.kind === 'title' ? `# ${row.title}` : row.room.name))).toEqual(['# Pinned', 'Old plan', '# Home', 'A notes', '# work', 'B notes', '# Yesterday', 'Lobby'])
})

it('finds rooms by their letters, and shows no group without a room', () => {
  expect(lines('parser')).toEqual(['# Today', 'Parser review', '# September 2026', 'Old parser'])
  expect(lines('rls nts')).toEqual(['# Previous 7 days', 'Release notes'])
  expect(lines('nothing')).toEqual([])
})
