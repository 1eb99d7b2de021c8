import { describe, expect, it } from 'vitest'
import { boundsOf, readUsageFilter, withDay } from './usage-filter'

const now = Date.parse('2026-11-15T12:34:56Z')

describe('what is looked at', () => {
  it('keeps what makes sense and drops the rest', () => {
    expect(readUsageFilter({ range: 'month', by: 'room', show: 'tokens' })).toEqual({ range: 'month', by: 'room', show: 'tokens' })
    expect(readUsageFilter({ range: 'century', by: 'weather', show: 3, from: '2026-11-01' })).toEqual({})
    expect(readUsageFilter({ from: '2026-11-09', to: '2026-11-01' })).toEqual({})
    expect(readUsageFilter({ from: '2026-13-99', to: '2026-14-01' })).toEqual({})
  })

  it('moves the other end along where both make no sense together', () => {
    const days = { from: '2026-11-01', to: '2026-11-09', show: 'runs' as const }
    expect(withDay(days, 'from', '2026-11-05')).toEqual({ ...days, from: '2026-11-05' })
    expect(withDay(days, 'from', '2026-12-01')).toEqual({ ...days, from: '2026-12-01', to: '2026-12-01' })
    expect(withDay(days, 'to', '2026-10-01')).toEqual({ ...days, from: '2026-10-01', to: '2026-10-01' })
    const early = withDay(days, 'from', '2020-01-01')
    expect(early).toEqual({ ...days, from: '2020-01-01', to: '2022-03-10' })
    expect(readUsageFilter({ ...early })).toEqual(early)
    expect(readUsageFilter({ ...early, to: '2022-03-11' })).toEqual({ show: 'runs' })
    expect(withDay(days, 'from', 'soon')).toBe(days)
  })

  it('ends with the hour or day that it is now', () => {
    expect(boundsOf({ range: 'day' }, now)).toEqual({ from: '2026-11-14T13:00:00.000Z', to: '2026-11-15T13:00:00.000Z', bucket: 'hour' })
    expect(boundsOf({}, now)).toEqual({ from: '2026-11-09T00:00:00.000Z', to: '2026-11-16T00:00:00.000Z', bucket: 'day' })
  })

  it('takes both days in, by the hour where they are few', () => {
    expect(boundsOf({ from: '2026-11-01', to: '2026-11-02' }, now)).toEqual({ from: '2026-11-01T00:00:00.000Z', to: '2026-11-03T00:00:00.000Z', bucket: 'hour' })
    expect(boundsOf({ from: '2026-10-01', to: '2026-10-31' }, now)).toMatchObject({ to: '2026-11-01T00:00:00.000Z', bucket: 'day' })
  })
})
