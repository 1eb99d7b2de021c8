import { describe, expect, it } from 'vitest'
import { newRun } from '@/feed/state'
import { endOf } from './run-end'

describe('the end of a run', () => {
  it('says what happened', () => {
    const run = newRun('r')
    expect(endOf({ ...run, status: 'failed', error: { code: 'over_loaded', message: 'Try later' } })).toEqual({
      kind: 'failed',
      title: 'Try later',
      detail: 'Error code: over_loaded',
    })
    const started = { ...run, startedAt: '2026-01-01T00:00:00Z', receipt: { millis: 4000, processes: 1, signals: [] } }
    expect(endOf({ ...started, status: 'interrupted', reason: 'crash' })).toEqual({ kind: 'stopped', title: 'The server restarted while this was running', detail: null })
    expect(endOf({ ...started, status: 'cancelled' })).toEqual({ kind: 'stopped', title: 'Stopped', detail: 'Took 4.0 s to stop; 1 process ended' })
  })

  it('b9, b10: is no stop where it never started', () => {
    const receipt = { millis: 0, processes: 0, signals: [] }
    expect(endOf({ ...newRun('r'), status: 'cancelled', receipt })).toEqual({ kind: 'stopped', title: 'Canceled before it started', detail: null })
    expect(endOf({ ...newRun('r'), status: 'interrupted', reason: 'new_message', receipt }).title).toBe('Not started: replaced by a newer message')
  })

  it('is unknown without its run', () => {
    expect(endOf(undefined).title).toBe('Stopped early')
  })
})
