export const groups = ['agent', 'model', 'room'] as const
export type GroupBy = (typeof groups)[number]
export const measures = ['cost', 'tokens', 'runs'] as const
export type Measure = (typeof measures)[number]
export const ranges = ['day', 'week', 'month', 'quarter'] as const
export type Range = (typeof ranges)[number]

/** What is looked at, as it stands in the address. Days of one's own choice go before a range. */
export interface UsageFilter {
  range?: Range
  /** As in 2026-11-15; the last day is meant to be in it. */
  from?: string
  to?: string
  by?: GroupBy
  show?: Measure
}

const isDay = (value: unknown): value is string => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value) && !Number.isNaN(Date.parse(value))

const hour = 3_600_000
const day = 24 * hour
/** The server counts no more days than this at once. */
const longest = 800

function isRange(from: string, to: string): boolean {
  const length = (Date.parse(to) - Date.parse(from)) / day
  return length >= 0 && length < longest
}

/** One end is chosen; the other one moves along where both would make no sense together. */
export function withDay(filter: UsageFilter, end: 'from' | 'to', chosen: string): UsageFilter {
  const other = end === 'from' ? 'to' : 'from'
  const next = { ...filter, [end]: chosen }
  if (!isDay(chosen)) return filter
  if (isRange(next.from ?? '', next.to ?? '')) return next
  const isBackwards = (next.from ?? '') > (next.to ?? '')
  const reach = (longest - 1) * day * (end === 'from' ? 1 : -1)
  return { ...next, [other]: isBackwards ? chosen : dayOf(Date.parse(chosen) + reach) }
}

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10)
}

/** From an address that anyone may have written: what makes no sense is left out. */
export function readUsageFilter(search: Record<string, unknown>): UsageFilter {
  const filter: UsageFilter = {}
  if (ranges.includes(search.range as Range)) filter.range = search.range as Range
  if (groups.includes(search.by as GroupBy)) filter.by = search.by as GroupBy
  if (measures.includes(search.show as Measure)) filter.show = search.show as Measure
  if (isDay(search.from) && isDay(search.to) && isRange(search.from, search.to)) {
    filter.from = search.from
    filter.to = search.to
  }
  return filter
}

export type Bucket = 'hour' | 'day'

export interface Bounds {
  from: string
  to: string
  bucket: Bucket
}

export const bucketMillis: Record<Bucket, number> = { hour, day }
const days: Record<Range, number> = { day: 1, week: 7, month: 30, quarter: 90 }
/** Up to here, hours tell more than days. */
const mostHours = 48

/** The server counts by whole hours and days in UTC, so both ends stand on one: a bar that is cut off tells a lie. */
export function boundsOf(filter: UsageFilter, now: number): Bounds {
  const [start, end] = filter.from && filter.to ? [Date.parse(filter.from), Date.parse(filter.to) + day] : lastDays(days[filter.range ?? 'week'], now)
  const bucket: Bucket = end - start <= mostHours * hour ? 'hour' : 'day'
  return { from: new Date(start).toISOString(), to: new Date(end).toISOString(), bucket }
}

/** A day means 24 hours up to now; more means whole days up to today. */
function lastDays(count: number, now: number): [start: number, end: number] {
  const unit = count === 1 ? hour : day
  const end = Math.floor(now / unit) * unit + unit
  return [end - count * day, end]
}
