import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import type { Span } from '@/lib/api/types'
import { type Bar, type Lane, type LaneName, type Picture, describe, drawTimeline } from '../model/timeline'
import { SpanTable } from './span-table'
import { t } from '../texts'
import styles from './timeline.module.css'

const laneWords: Record<LaneName, string> = { get waits() { return t.waits }, get model() { return t.model }, get tools() { return t.tools } }
const rowHeight = 22
const barHeight = 16

/** The timeline of a run, from left to right. The table below has the same data as text. */
export function Timeline({ spans, now }: { spans: readonly Span[]; now: number }): ReactNode {
  const picture = drawTimeline(spans, now)
  const [chosen, setChosen] = useState<number | null>(null)
  const [shown, setShown] = useState<number | null>(null)
  const root = useRef<HTMLDivElement>(null)
  if (picture.bars.length === 0) return <p className={styles.nothing}>{t.notStartedYet}</p>

  // One stop for the Tab key; arrows go from bar to bar in the order of time.
  const stop = Math.min(shown ?? chosen ?? 0, picture.bars.length - 1)
  const move = (event: KeyboardEvent): void => {
    const to = target(event.key, stop, picture.bars.length)
    if (to === null) return
    event.preventDefault()
    root.current?.querySelector<SVGGElement>(`[data-bar="${to}"]`)?.focus()
  }
  const bar = picture.bars[shown ?? chosen ?? -1]

  return (
    <section className={styles.section} aria-labelledby="timeline-title">
      <h2 id="timeline-title">{t.timeline}</h2>
      {/* The keys are for the bars inside, each of which is a button. */}
      {/* oxlint-disable-next-line jsx-a11y/no-static-element-interactions, jsx-a11y/no-noninteractive-element-interactions */}
      <div className={styles.picture} ref={root} role="group" aria-label={t.timelineArrowKeysGoFromStepTo} onKeyDown={move}>
        {picture.lanes.map((lane) => (
          <LaneView key={lane.name} lane={lane} ticks={picture.ticks} stop={stop} chosen={chosen} onShow={setShown} onChoose={setChosen} />
        ))}
        <Axis ticks={picture.ticks} />
      </div>
      <p className={styles.detail} aria-hidden>
        {bar ? describe(bar) : t.hoverABarForDetailsOrUse}
      </p>
      <SpanTable bars={picture.bars} chosen={chosen} />
    </section>
  )
}

function target(key: string, from: number, count: number): number | null {
  if (key === 'ArrowRight' || key === 'ArrowDown') return Math.min(from + 1, count - 1)
  if (key === 'ArrowLeft' || key === 'ArrowUp') return Math.max(from - 1, 0)
  if (key === 'Home') return 0
  return key === 'End' ? count - 1 : null
}

interface LaneViewProps {
  lane: Lane
  ticks: Picture['ticks']
  stop: number
  chosen: number | null
  onShow: (index: number | null) => void
  onChoose: (index: number) => void
}

function LaneView({ lane, ticks, stop, chosen, onShow, onChoose }: LaneViewProps): ReactNode {
  return (
    <>
      <span className={styles.lane}>{laneWords[lane.name]}</span>
      <svg className={styles.row} height={lane.rows * rowHeight} role="presentation">
        {ticks.map(({ at }) => (
          <line key={at} className={styles.tick} x1={percent(at)} x2={percent(at)} y1="0" y2="100%" />
        ))}
        {lane.bars.map((bar) => (
          <BarView
            key={bar.index}
            bar={bar}
            isStop={bar.index === stop}
            isChosen={bar.index === chosen}
            onShow={onShow}
            onChoose={() => onChoose(bar.index)}
          />
        ))}
      </svg>
    </>
  )
}

interface BarViewProps {
  bar: Bar
  isStop: boolean
  isChosen: boolean
  onShow: (index: number | null) => void
  onChoose: () => void
}

function BarView({ bar, isStop, isChosen, onShow, onChoose }: BarViewProps): ReactNode {
  const { span, index, row, start, width } = bar
  return (
    <g
      role="button"
      tabIndex={isStop ? 0 : -1}
      aria-label={describe(bar)}
      aria-pressed={isChosen}
      className={styles.bar}
      data-bar={index}
      data-kind={span.kind}
      data-error={span.is_error || undefined}
      data-open={span.to_ms === null || span.to_ms === undefined || undefined}
      onFocus={() => onShow(index)}
      onBlur={() => onShow(null)}
      onPointerEnter={() => onShow(index)}
      onPointerLeave={() => onShow(null)}
      onClick={onChoose}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' && event.key !== ' ') return
        event.preventDefault()
        onChoose()
      }}
    >
      <rect x={percent(start)} y={row * rowHeight + (rowHeight - barHeight) / 2} width={percent(width)} height={barHeight} rx="2" />
    </g>
  )
}

function Axis({ ticks }: { ticks: Picture['ticks'] }): ReactNode {
  return (
    <svg className={styles.axis} height="18" aria-hidden>
      {ticks.map(({ at, label }) => (
        <text key={at} x={percent(at)} y="13" textAnchor={at === 0 ? 'start' : at > 0.95 ? 'end' : 'middle'}>
          {label}
        </text>
      ))}
    </svg>
  )
}

function percent(part: number): string {
  return `${(part * 100).toFixed(3)}%`
}
