import { describe, expect, it } from 'vitest'
import { newRun } from '@/feed/state'
import { endOf, receiptText } from './run-end'

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

  it('reads the receipt aloud', () => {
    expect(receiptText({ millis: 12, processes: 0, signals: [] })).toBe('It had really stopped after 12 ms.')
    expect(receiptText({ millis: 1200, processes: 2, signals: ['SIGTERM', 'SIGKILL'] })).toBe(
      'It had really stopped after 1.2 s; 2 processes were ended with SIGTERM, SIGKILL.',
    )
    expect(receiptText({ millis: 40, processes: 0, signals: ['interrupt'] })).toContain('by interrupt.')
  })
})
