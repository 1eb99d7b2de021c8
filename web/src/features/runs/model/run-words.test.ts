import { expect, it } from 'vitest'
import { millisOf } from './run-time'
import { adviceFor } from './run-words'

it('says what to do about every failure', () => {
  expect(adviceFor({ code: 'limit_wall' })).toContain('Raise this limit')
  expect(adviceFor({ code: 'program_missing' })).toContain('Settings')
  expect(adviceFor({ code: 'never_heard_of' })).toContain('Retry')
})

it('counts the time of a run from its start, and not at all before it', () => {
  const started_at = '2026-11-15T12:00:00Z'
  const now = Date.parse('2026-11-15T12:00:05Z')
  expect(millisOf({ duration_ms: 40, started_at, ended_at: null }, now)).toBe(40)
  expect(millisOf({ started_at, ended_at: null }, now)).toBe(5000)
  expect(millisOf({ started_at, ended_at: '2026-11-15T12:00:02Z' }, now)).toBe(2000)
  expect(millisOf({ started_at: null }, now)).toBeNull()
})
