import type { UsageFigures, UsageReport } from '@/lib/api/types'
import { count, dollars, formatDate } from '@/lib/format'
import type { LimitLine } from './budget-list'
import { valueOf } from './figures'
import { type Bucket, type Measure, bucketMillis } from './usage-filter'
import { t } from '../texts'

export interface Part {
  name: string
  /** Which colour: the series' place in the list. */
  hue: number
  value: number
  isUnknown: boolean
  /** Parts of the height of the picture, from its ground up. */
  start: number
  height: number
}

export interface Column {
  at: number
  total: number
  hasUnknown: boolean
  runs: number
  parts: Part[]
}

export interface Chart {
  columns: Column[]
  /** The value at the upper edge. */
  top: number
  /** Into how many parts lines divide it, so that each stands at a round figure. */
  steps: number
  hues: ReadonlyMap<string, number>
  /** Limits that are within the picture, with their height as a part of it. */
  limits: (LimitLine & { height: number })[]
}

/** Further series share the last color: more colors would not be distinguishable. */
export const mostHues = 8
/** A report is bounded by the server; this is for an answer that makes no sense. */
const mostColumns = 2500

/** Series by weight: the heaviest lies at the ground and comes first in the list. */
export function ranked(report: UsageReport, measure: Measure): UsageReport['series'] {
  return report.series.toSorted((a, b) => valueOf(b.total, measure) - valueOf(a.total, measure) || b.total.runs - a.total.runs || a.name.localeCompare(b.name))
}

/** A limit so far above everything would press the columns flat. */
const farthestLimit = 4

export function drawUsage(report: UsageReport, measure: Measure, lines: readonly LimitLine[] = []): Chart {
  const series = ranked(report, measure)
  const hues = new Map(series.map(({ key }, index) => [key, Math.min(index, mostHues - 1)]))
  const points = series.map((one) => ({ ...one, byTime: new Map(one.points.map((point) => [Date.parse(point.at), point])) }))
  const columns = timesOf(report).map((at): Column => {
    const parts = points.flatMap(({ key, name, byTime }) => {
      const figures = byTime.get(at)
      return figures ? [partOf(name, hues.get(key) ?? 0, figures, measure)] : []
    })
    const runs = points.reduce((sum, { byTime }) => sum + (byTime.get(at)?.runs ?? 0), 0)
    return { at, parts, runs, total: parts.reduce((sum, part) => sum + part.value, 0), hasUnknown: parts.some((part) => part.isUnknown) }
  })
  const highest = Math.max(0, ...columns.map((column) => column.total))
  // Columns of hours, tokens and runs have nothing to do with a limit of dollars for a day.
  const near = measure === 'cost' && report.bucket === 'day' ? lines.filter(({ value }) => highest === 0 || value <= highest * farthestLimit) : []
  const { top, steps } = scaleFor(Math.max(highest, ...near.map(({ value }) => value)), measure)
  for (const column of columns) pile(column, top)
  return { columns, top, steps, hues, limits: near.map((line) => ({ ...line, height: line.value / top })) }
}

function partOf(name: string, hue: number, figures: UsageFigures, measure: Measure): Part {
  return { name, hue, value: valueOf(figures, measure), isUnknown: measure === 'cost' && figures.unpriced > 0, start: 0, height: 0 }
}

function pile(column: Column, top: number): void {
  let ground = 0
  for (const part of column.parts) {
    part.start = ground
    part.height = part.value / top
    ground += part.height
  }
}

/** Every hour or day between both ends, also those in which nothing happened. */
function timesOf({ from, to, bucket }: Pick<UsageReport, 'from' | 'to' | 'bucket'>): number[] {
  const step = bucketMillis[bucket]
  const first = Math.floor(Date.parse(from) / step) * step
  const length = Math.min(mostColumns, Math.max(0, Math.ceil((Date.parse(to) - first) / step)))
  return Array.from({ length }, (_, index) => first + index * step)
}

/** Rounds up to the next 1, 2 or 5 times a power of ten. Runs and tokens are whole numbers. */
export function scaleFor(highest: number, measure: Measure): { top: number; steps: number } {
  const value = measure === 'cost' ? highest : Math.max(5, highest)
  if (value <= 0) return { top: 1, steps: 5 }
  const power = 10 ** Math.floor(Math.log10(value))
  const digit = [1, 2, 5, 10].find((one) => value <= one * power * (1 + 1e-9)) ?? 10
  return { top: digit * power, steps: digit === 2 ? 4 : 5 }
}

/** Few enough to be read on a phone, the first and then evenly. */
export function labelled(length: number, most: number): number[] {
  const step = Math.max(1, Math.ceil(length / most))
  return Array.from({ length: Math.ceil(length / step) }, (_, index) => index * step)
}


export function timeLabel(at: number, bucket: Bucket): string {
  return formatDate(new Date(at), bucket === 'hour' ? 'hourOfDay' : 'utcDay')
}

export function timeTitle(at: number, bucket: Bucket): string {
  return formatDate(new Date(at), bucket === 'hour' ? 'dayAndHour' : 'utcFullDay')
}

export function measured(value: number, measure: Measure): string {
  return measure === 'cost' ? dollars(value) : count(Math.round(value * 10) / 10)
}

function partText({ value, isUnknown }: Part, measure: Measure): string {
  if (!isUnknown) return measured(value, measure)
  return value > 0 ? t.unknown(measured(value, measure)) : t.unknownWord
}

/** A column in words: all that the picture shows of it. */
export function describeColumn(column: Column, bucket: Bucket, measure: Measure): string {
  const unit = { cost: '', tokens: t.tokensWord, runs: column.total === 1 ? t.run : t.runsWord }[measure]
  const unknown = column.hasUnknown ? t.andWhatHasNoKnownPrice : ''
  const total = column.parts.length === 0 ? t.nothing : `${measured(column.total, measure)}${unit}${unknown}`
  const parts = column.parts.filter((part) => part.value > 0 || part.isUnknown)
  const each = parts.length < 2 ? parts.map((part) => part.name) : parts.map((part) => `${part.name} ${partText(part, measure)}`)
  return [`${timeTitle(column.at, bucket)}: ${total}`, ...each].join(', ')
}
