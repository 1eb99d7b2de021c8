import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import chartStyles from '@/components/ui/chart.module.css'
import { type Chart, type Column, describeColumn, labelled, measured, timeLabel } from '../model/chart'
import type { Bucket, Measure } from '../model/usage-filter'
import { UsageColumns } from './usage-columns'
import { t } from '../texts'
import styles from './usage-chart.module.css'

interface UsageChartProps {
  chart: Chart
  bucket: Bucket
  measure: Measure
}

const mostLabels = 6

/** A column for each hour or day, piled up from the series. The same figures stand below as a table. */
export function UsageChart({ chart, bucket, measure }: UsageChartProps): ReactNode {
  const { columns, top, steps, limits } = chart
  // A scale of dollars beside a chart without any would look like a sum.
  const isEmpty = limits.length === 0 && columns.every((column) => column.total === 0)
  const lines = Array.from({ length: steps + 1 }, (_, step) => step / steps)
  const [shown, setShown] = useState<number | null>(null)
  const [stop, setStop] = useState(columns.length - 1)
  const root = useRef<SVGSVGElement>(null)
  // One stop for the Tab key; arrows go from column to column.
  const current = Math.min(stop, columns.length - 1)
  const move = (event: KeyboardEvent): void => {
    const to = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: columns.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    root.current?.querySelector<SVGGElement>(`[data-column="${Math.max(0, Math.min(to, columns.length - 1))}"]`)?.focus()
  }
  const column = columns[shown ?? -1]
  return (
    <figure className={styles.figure}>
      <div className={styles.plot}>
        <div className={chartStyles.scale} aria-hidden>
          {lines.toReversed().map((line) => (
            <span key={line}>{isEmpty && line > 0 ? '' : measured(line * top, measure)}</span>
          ))}
        </div>
        {/* The keys are for the columns inside. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
        <svg className={styles.picture} ref={root} role="group" aria-label={t.usageOverTimeArrowKeysGoFrom} onKeyDown={move}>
          {lines.map((line) => (
            <line key={line} className={styles.line} x1="0" x2="100%" y1={percent(1 - line)} y2={percent(1 - line)} />
          ))}
          {columns.map((one, index) => (
            <ColumnView
              key={one.at}
              column={one}
              index={index}
              length={columns.length}
              label={describeColumn(one, bucket, measure)}
              isStop={index === current}
              onShow={(isShown) => {
                setShown(isShown ? index : null)
                if (isShown) setStop(index)
              }}
            />
          ))}
          {limits.map(({ label, height }) => (
            <g key={label} role="img" aria-label={label} className={styles.limit}>
              <line x1="0" x2="100%" y1={percent(1 - height)} y2={percent(1 - height)} />
              <text x="100%" y={percent(1 - height)} dy="-0.35em" textAnchor="end">
                {label}
              </text>
            </g>
          ))}
        </svg>
        <svg className={styles.times} aria-hidden>
          {labelled(columns.length, mostLabels).map((index, place) => (
            <text key={index} data-minor={place % 2 === 1 || undefined} x={percent((index + 0.5) / columns.length)} y="0.8em" textAnchor={anchor(index, columns.length)}>
              {timeLabel(columns[index]?.at ?? 0, bucket)}
            </text>
          ))}
        </svg>
      </div>
      <figcaption className={styles.detail}>
        {column ? describeColumn(column, bucket, measure) : hintOf(chart, bucket)}
      </figcaption>
      <UsageColumns columns={columns} bucket={bucket} measure={measure} />
    </figure>
  )
}

function hintOf({ columns }: Chart, bucket: Bucket): string {
  if (columns.every((column) => column.total === 0)) {
    return columns.some((column) => column.hasUnknown)
      ? t.thePricesOfTheseModelsAreUnknown
      : t.noCostInThisPeriod
  }
  return bucket === 'day' ? t.daysAreCountedInUtcHoverA : t.hoverAColumnForItsFigures
}

interface ColumnViewProps {
  column: Column
  index: number
  length: number
  label: string
  isStop: boolean
  onShow: (isShown: boolean) => void
}

/** The whole height answers to the pointer: what is small is hard to hit. */
function ColumnView({ column, index, length, label, isStop, onShow }: ColumnViewProps): ReactNode {
  const x = percent((index + 0.12) / length)
  const width = percent(0.76 / length)
  return (
    <g
      role="img"
      aria-label={label}
      tabIndex={isStop ? 0 : -1}
      className={styles.column}
      data-column={index}
      onFocus={() => onShow(true)}
      onBlur={() => onShow(false)}
      onPointerEnter={() => onShow(true)}
      onPointerLeave={() => onShow(false)}
    >
      <rect className={styles.field} x={percent(index / length)} y="0" width={percent(1 / length)} height="100%" />
      {column.parts.map((part) => (
        <rect
          key={part.name}
          className={styles.part}
          data-hue={part.hue}
          x={x}
          y={percent(1 - part.start - part.height)}
          width={width}
          height={percent(part.height)}
        />
      ))}
    </g>
  )
}

/** At the edges a label leans inwards. */
function anchor(index: number, length: number): 'start' | 'middle' | 'end' {
  const at = (index + 0.5) / length
  return at < 0.06 ? 'start' : at > 0.94 ? 'end' : 'middle'
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`
}
