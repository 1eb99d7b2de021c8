import { describe, expect, it } from 'vitest'
import { newRun } from '@/feed/state'
import { endOf } from './run-end'

describe('the end of a run', () => {
  it('says what happened', () => {
    const run = newRun('r')
    expect(endOf({ ...run, status: 'failed', error: { code: 'over_loaded', message: 'Try later' } })).toEqual({
      kind: 'failed',
      title: 'Try later',
      detail: 'Code over_loaded',
    })
    expect(endOf({ ...run, status: 'interrupted', reason: 'crash' }).title).toContain('went down')
    expect(endOf(undefined).title).toBe('Stopped early')
  })
})
