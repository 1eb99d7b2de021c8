import { expect, it } from 'vitest'
import type { Run } from '@/lib/api/types'
import { percent } from '@/lib/format'
import { type Series, figuresOf } from './figures'

const series = (total: object, points: object[] = []): Series[] => [{ key: 'a', name: 'A', total, points }] as unknown as Series[]
const run = (agent_id: string, created_at: string): Run => ({ agent_id, created_at }) as unknown as Run

it('counts as success what completed, of what was not stopped', () => {
  const { usage } = figuresOf('a', series({ runs: 10, completed: 6, failed: 2, stopped: 2, cost: 1.5, unpriced: 1 }), [])
  expect(usage).toEqual({ runs: 10, successRate: 0.75, cost: 1.5, unpriced: 1 })
  expect(figuresOf('b', series({}), []).usage).toMatchObject({ runs: 0, successRate: null })
  expect(figuresOf('a', null, []).usage).toBeNull()
})

it('b4: knows the last use from the newest run, else from the last day with one', () => {
  const points = [{ at: '2026-11-01T00:00:00Z', runs: 2 }, { at: '2026-11-02T00:00:00Z', runs: 0 }]
  const runs = [run('b', '2026-11-16T10:00:00Z'), run('a', '2026-11-15T10:00:00Z'), run('a', '2026-11-14T10:00:00Z')]
  expect(figuresOf('a', series({}, points), runs).lastUsed).toEqual({ at: '2026-11-15T10:00:00Z', isDay: false })
  expect(figuresOf('a', series({}, points), []).lastUsed).toEqual({ at: '2026-11-01T00:00:00Z', isDay: true })
  expect(figuresOf('c', series({}, points), runs).lastUsed).toBeNull()
})

it('b5: never rounds a failure away', () => {
  expect(percent(1)).toBe('100%')
  expect(percent(0.999)).toBe('99%')
  expect(percent(0)).toBe('0%')
})
