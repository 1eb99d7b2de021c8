import { describe as group, expect, it } from 'vitest'
import type { Span } from '@/lib/api/types'
import { describe, drawTimeline, ticksOf } from './timeline'

const span = (kind: Span['kind'], from_ms: number, to_ms: number | null, more: Partial<Span> = {}): Span => ({ kind, from_ms, to_ms, ...more })

group('the picture of a run', () => {
  it('puts each kind in its lane, by when it began', () => {
    const picture = drawTimeline([span('tool', 400, 600), span('queued', 0, 100), span('model', 100, 400), span('model', 600, 1000)], 0)
    expect(picture.lanes.map((lane) => [lane.name, lane.bars.length])).toEqual([
      ['waits', 1],
      ['model', 2],
      ['tools', 1],
    ])
    expect(picture.bars.map((bar) => bar.span.kind)).toEqual(['queued', 'model', 'tool', 'model'])
    expect(picture.total).toBe(1000)
    expect(picture.bars[2]).toMatchObject({ start: 0.4, width: 0.2, row: 0 })
  })

  it('stacks tools that worked at the same time and reuses what became free', () => {
    const picture = drawTimeline([span('tool', 0, 100), span('tool', 50, 150), span('tool', 120, 200)], 0)
    expect(picture.bars.map((bar) => bar.row)).toEqual([0, 1, 0])
    expect(picture.lanes[0]?.rows).toBe(2)
  })

  it('draws unfinished spans up to now, and never backwards', () => {
    expect(drawTimeline([span('model', 0, 500), span('approval', 500, null)], 2000).bars[1]).toMatchObject({ width: 0.75, millis: 1500 })
    expect(drawTimeline([span('model', 900, null)], 100).bars[0]).toMatchObject({ width: 0, millis: 0 })
  })

  it('is empty without spans', () => {
    expect(drawTimeline([], 0)).toMatchObject({ lanes: [], bars: [] })
  })

  it('has few and round times below it', () => {
    for (const total of [1, 7, 930, 12_345, 61_000, 600_000, 90_000_000]) {
      const ticks = ticksOf(total)
      expect(ticks.length).toBeLessThanOrEqual(6)
      expect(ticks.every(({ at }) => at >= 0 && at <= 1)).toBe(true)
    }
    expect(ticksOf(4000).map(({ label }) => label)).toEqual(['0', '1 s', '2 s', '3 s', '4 s'])
  })
})

it('says in words what it shows', () => {
  expect(describe({ span: span('tool', 1200, 3400, { name: 'Bash', is_error: true }), millis: 2200 })).toBe('Tool: Bash, from 1.2 s, took 2.2 s, failed')
  expect(describe({ span: span('approval', 10, null, { name: 'Edit' }), millis: 500 })).toBe('Waiting for approval: Edit, from 10 ms, for 500 ms so far')
})
