import { describe, expect, it } from 'vitest'
import type { UsageFigures, UsageReport } from '@/lib/api/types'
import { describeColumn, drawUsage, labelled, scaleFor } from './chart'
import { toCsv } from './csv'
import { costText } from '@/lib/format'
import { successRate } from './figures'

const figures = (more: Partial<UsageFigures>): UsageFigures => ({
  runs: 1,
  completed: 1,
  failed: 0,
  stopped: 0,
  input_tokens: 10,
  output_tokens: 5,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost: 1,
  unpriced: 0,
  duration_ms: 100,
  ...more,
})

const report: UsageReport = {
  from: '2026-11-13T00:00:00Z',
  to: '2026-11-16T00:00:00Z',
  bucket: 'day',
  total: figures({ runs: 4, cost: 7, unpriced: 1 }),
  left_out: 0,
  series: [
    { key: 'a', name: 'Small', total: figures({ cost: 1 }), points: [{ at: '2026-11-13T00:00:00Z', ...figures({ cost: 1 }) }] },
    {
      key: 'b',
      name: '=SUM(A1), "big"',
      total: figures({ runs: 2, cost: 6 }),
      points: [
        { at: '2026-11-13T00:00:00.000Z', ...figures({ cost: 2 }) },
        { at: '2026-11-15T00:00:00Z', ...figures({ cost: 4 }) },
      ],
    },
    { key: 'c', name: 'Priceless', total: figures({ cost: null, unpriced: 1 }), points: [{ at: '2026-11-15T00:00:00Z', ...figures({ cost: null, unpriced: 1 }) }] },
  ],
}

describe('the chart', () => {
  it('has a column for each day, also for those on which nothing happened', () => {
    const { columns, top } = drawUsage(report, 'cost')
    expect(columns.map((column) => column.total)).toEqual([3, 0, 4])
    expect(top).toBe(5)
  })

  it('piles the heaviest first, without a gap, inside of the picture', () => {
    const [first] = drawUsage(report, 'cost').columns
    expect(first?.parts.map(({ hue, start, height }) => [hue, start, height])).toEqual([
      [0, 0, 0.4],
      [1, 0.4, 0.2],
    ])
  })

  it('b27: does not take an unknown price for nothing', () => {
    const { columns } = drawUsage(report, 'cost')
    expect(columns.map((column) => column.hasUnknown)).toEqual([false, false, true])
    expect(describeColumn(columns[2]!, 'day', 'cost')).toContain('Priceless unknown')
    expect(drawUsage(report, 'tokens').columns[2]?.hasUnknown).toBe(false)
    expect(costText(figures({ cost: null, unpriced: 1 }))).toBe('unknown')
    expect(costText(figures({ cost: 0 }))).toBe('$0')
    expect(costText(figures({ cost: 7, unpriced: 1 }))).toBe('$7.00 + unknown')
    expect(costText(figures({ cost: null }))).toBe('$0')
  })

  it('says of an empty day that it was', () => {
    expect(describeColumn(drawUsage(report, 'runs').columns[1]!, 'day', 'runs')).toContain('nothing')
  })

  it('ends at a round figure', () => {
    expect([0, 0.00031, 0.99, 1, 4.2, 730].map((value) => scaleFor(value, 'cost').top)).toEqual([1, 0.0005, 1, 1, 5, 1000])
    expect(scaleFor(1, 'runs')).toEqual({ top: 5, steps: 5 })
    expect(scaleFor(17, 'runs')).toEqual({ top: 20, steps: 4 })
  })

  it('labels few of many columns', () => {
    expect(labelled(7, 6)).toEqual([0, 2, 4, 6])
    expect(labelled(90, 6)).toHaveLength(6)
  })
})

it('counts success among those that were not stopped', () => {
  expect(successRate({ completed: 3, failed: 1 })).toBe(0.75)
  expect(successRate({ completed: 0, failed: 0 })).toBeNull()
})

it('exports what no spreadsheet takes for a formula, and no sum where none is known', () => {
  const lines = toCsv(report, 'agent').split('\r\n')
  expect(lines[0]).toBe('time,agent,agent_key,runs,completed,failed,stopped,input_tokens,output_tokens,cache_read_tokens,cache_write_tokens,duration_ms,unpriced,cost_usd')
  expect(lines[2]).toContain(`"'=SUM(A1), ""big""",b,1,`)
  expect(lines[4]).toMatch(/,Priceless,c,.*,100,1,$/)
  expect(lines).toHaveLength(6)
})
