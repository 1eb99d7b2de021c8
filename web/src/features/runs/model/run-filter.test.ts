import { describe, expect, it } from 'vitest'
import { isNarrowed, newerThan, readFilter, withFilter } from './run-filter'

describe('the filter in the address', () => {
  it('keeps what makes sense and drops the rest', () => {
    expect(readFilter({ status: 'failed', agent: 'a1', room: 'r1', since: 'day', before: 'c9' })).toEqual({
      status: 'failed',
      agent: 'a1',
      room: 'r1',
      since: 'day',
      before: 'c9',
    })
    expect(readFilter({ status: 'exploded', agent: 7, room: '', since: 'toString', other: 'x' })).toEqual({})
  })

  it('begins at the newest page when it is changed', () => {
    expect(withFilter({ status: 'failed', before: 'c9' }, { room: 'r1' })).toEqual({ status: 'failed', room: 'r1' })
    expect(withFilter({ status: 'failed' }, { status: '' as never })).toEqual({})
  })

  it('knows a page from a filter', () => {
    expect(isNarrowed({ before: 'c9' })).toBe(false)
    expect(isNarrowed({ before: 'c9', since: 'day' })).toBe(true)
  })
})

describe('runs of some time', () => {
  const now = Date.parse('2026-11-15T12:00:00Z')
  const runs = [{ created_at: '2026-11-15T11:30:00Z' }, { created_at: '2026-11-15T10:59:59Z' }]

  it('ends the list where it gets too old', () => {
    expect(newerThan({ runs, next: 'older' }, 'hour', now)).toEqual({ runs: runs.slice(0, 1), next: null })
  })

  it('goes on where all of a page is new enough', () => {
    expect(newerThan({ runs, next: 'older' }, 'day', now)).toEqual({ runs, next: 'older' })
    expect(newerThan({ runs }, undefined, now)).toEqual({ runs, next: null })
  })
})
