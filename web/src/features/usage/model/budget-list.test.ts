import { describe, expect, it } from 'vitest'
import type { Budget, UsageReport } from '@/lib/api/types'
import { limitLines, readLimit, shareSpent, subjectOf } from './budget-list'
import { drawUsage } from './chart'

const names = { agents: [{ id: 'a', name: 'Reviewer' }], rooms: [{ id: 'r', name: 'Parser' }] }

function budget(changes: Partial<Budget>): Budget {
  return { id: 'b', scope: 'workspace', subject_id: null, period: 'day', limit_usd: 2, spent_usd: 0, resets_at: null, created_at: '', ...changes }
}

it('a budget is named after what it counts', () => {
  expect(subjectOf({ scope: 'workspace' }, names)).toBe('Whole workspace')
  expect(subjectOf({ scope: 'agent', subject_id: 'a' }, names)).toBe('Agent Reviewer')
  expect(subjectOf({ scope: 'room', subject_id: 'r' }, names)).toBe('Room Parser')
  expect(subjectOf({ scope: 'agent', subject_id: 'gone' }, names)).toBe('Deleted agent')
})

it('a budget that was passed is full', () => {
  expect(shareSpent({ spent_usd: 1, limit_usd: 4 })).toBe(0.25)
  expect(shareSpent({ spent_usd: 9, limit_usd: 4 })).toBe(1)
})

it('takes amounts as people write them, and nothing else', () => {
  expect(['25', ' $2.50', '2,5', '0', '-1', 'ten', '', '1e12'].map(readLimit)).toEqual([25, 2.5, 2.5, null, null, null, null, null])
})

describe('the lines of limits in the chart', () => {
  const now = new Date('2026-11-17T12:00:00Z')
  const figures = { runs: 1, completed: 1, failed: 0, stopped: 0, input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0, duration_ms: 1, unpriced: 0, cost: 1 }
  const report = {
    from: '2026-11-16T00:00:00Z',
    to: '2026-11-18T00:00:00Z',
    bucket: 'day',
    left_out: 0,
    total: figures,
    series: [{ key: 'a', name: 'Reviewer', total: figures, points: [{ at: '2026-11-17T00:00:00Z', ...figures }] }],
  } as UsageReport

  it('are the budgets of the workspace, for each day', () => {
    const lines = limitLines([budget({ limit_usd: 2 }), budget({ period: 'month', limit_usd: 60 }), budget({ period: 'total' }), budget({ scope: 'agent', subject_id: 'a' })], now)
    expect(lines).toEqual([
      { label: 'Daily limit $2.00', value: 2 },
      { label: 'Even pace for $60.00 a month', value: 2 },
    ])
  })

  it('stretch the scale, unless they are far above every column', () => {
    const drawn = drawUsage(report, 'cost', [{ label: 'near', value: 2 }, { label: 'far', value: 50 }])
    expect(drawn.limits).toEqual([{ label: 'near', value: 2, height: 1 }])
    expect(drawn.top).toBe(2)
    expect(drawUsage(report, 'tokens', [{ label: 'near', value: 2 }]).limits).toEqual([])
  })
})
