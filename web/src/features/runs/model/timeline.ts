import type { Span } from '@/lib/api/types'
import { duration } from '@/lib/format'
import { t } from '../texts'

export type SpanKind = Span['kind']
export type LaneName = 'waits' | 'model' | 'tools'

export interface Bar {
  span: Span
  /** Where it stands among all spans, by when they began. */
  index: number
  /** Below others of its lane that it overlaps. */
  row: number
  /** Parts of the whole, from 0 to 1. */
  start: number
  width: number
  millis: number
}

export interface Lane {
  name: LaneName
  rows: number
  bars: Bar[]
}

export interface Picture {
  lanes: Lane[]
  bars: Bar[]
  total: number
  ticks: { at: number; label: string }[]
}

const laneOf: Record<SpanKind, LaneName> = { queued: 'waits', waiting: 'waits', approval: 'waits', model: 'model', tool: 'tools' }
const laneOrder: readonly LaneName[] = ['waits', 'model', 'tools']
/** What is not over yet reaches to now, and the picture has to have a width. */
const least = 1

/** Where each span of a run is drawn. `now` is in milliseconds since the run was queued. */
export function drawTimeline(spans: readonly Span[], now: number): Picture {
  const sorted = spans.toSorted((a, b) => a.from_ms - b.from_ms || endOf(a, now) - endOf(b, now))
  const total = Math.max(least, ...sorted.map((span) => endOf(span, now)))
  const rowEnds = new Map<LaneName, number[]>()
  const bars = sorted.map((span, index): Bar => {
    const lane = laneOf[span.kind]
    const ends = rowEnds.get(lane) ?? []
    rowEnds.set(lane, ends)
    const end = endOf(span, now)
    const free = ends.findIndex((taken) => taken <= span.from_ms)
    const row = free === -1 ? ends.length : free
    ends[row] = end
    return { span, index, row, start: span.from_ms / total, width: (end - span.from_ms) / total, millis: end - span.from_ms }
  })
  const lanes = laneOrder.map((name) => ({
    name,
    rows: rowEnds.get(name)?.length ?? 0,
    bars: bars.filter((bar) => laneOf[bar.span.kind] === name),
  }))
  return { lanes: lanes.filter((lane) => lane.rows > 0), bars, total, ticks: ticksOf(total) }
}

function endOf(span: Span, now: number): number {
  return Math.max(span.from_ms, span.to_ms ?? now)
}

const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000]
const mostTicks = 5

/** Round times, few enough to be read. */
export function ticksOf(total: number): { at: number; label: string }[] {
  let step = steps.find((one) => total / one <= mostTicks) ?? 60_000
  while (total / step > mostTicks) step *= 2
  const count = Math.floor(total / step)
  return Array.from({ length: count + 1 }, (_, index) => ({ at: (index * step) / total, label: index === 0 ? '0' : tickLabel(index * step) }))
}

function tickLabel(millis: number): string {
  return millis >= 1000 && millis < 60_000 ? `${millis / 1000} s` : duration(millis).replace(' 00 s', '').replace(' 0 min', '')
}

const kindWords: Record<SpanKind, string> = {
  get queued() { return t.queued },
  get model() { return t.modelCall },
  get tool() { return t.tool },
  get approval() { return t.waitingForApproval },
  get waiting() { return t.waited },
}

export function nameOf(span: Span): string {
  const kind = kindWords[span.kind]
  return span.name ? `${kind}: ${span.name}` : kind
}

/** A span in words: all that the picture shows of it. */
export function describe({ span, millis }: Pick<Bar, 'span' | 'millis'>): string {
  const isOpen = span.to_ms === null || span.to_ms === undefined
  const took = isOpen ? t.forSoFar(duration(millis)) : t.took(duration(millis))
  return [nameOf(span), t.from(duration(span.from_ms)), took, span.is_error && 'failed'].filter(Boolean).join(', ')
}
