import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import chartStyles from '@/components/ui/chart.module.css'
import type { Round } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { type ScorePoint, scorePoints } from '../model/score'
import { t } from '../texts'
import styles from './score-chart.module.css'

const percent = (part: number): string => `${(part * 100).toFixed(2)}%`
const marks = [0, 50, 100]

/** The experience after each rating. Arrow keys move between points; the history below has the same data as text. */
export function ScoreChart({ rounds }: { rounds: readonly Round[] }): ReactNode {
  const points = scorePoints(rounds)
  const [shown, setShown] = useState<number | null>(null)
  const root = useRef<SVGSVGElement>(null)
  const last = points.at(-1)
  if (!last) return <p className={styles.nothing}>{t.noRatingsYet}</p>
  const current = Math.min(shown ?? points.length - 1, points.length - 1)
  const point = points[current] ?? last
  const move = (event: KeyboardEvent): void => {
    const to = { ArrowRight: current + 1, ArrowLeft: current - 1, Home: 0, End: points.length - 1 }[event.key]
    if (to === undefined) return
    event.preventDefault()
    root.current?.querySelector<SVGElement>(`[data-point="${Math.max(0, Math.min(to, points.length - 1))}"]`)?.focus()
  }
  return (
    <figure className={styles.figure}>
      <div className={styles.plot}>
        <div className={chartStyles.scale} aria-hidden>
          {marks.toReversed().map((mark) => (
            <span key={mark}>{mark}</span>
          ))}
        </div>
        {/* The keys are for the points inside. */}
        {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
        <svg ref={root} className={styles.picture} role="group" aria-label={t.experienceOverTimeArrowKeysGoFrom} onKeyDown={move}>
          {marks.map((mark) => (
            <line key={mark} className={styles.grid} x1="0" x2="100%" y1={percent(1 - mark / 100)} y2={percent(1 - mark / 100)} />
          ))}
          {points.slice(1).map((to, index) => (
            <Stretch key={index} from={points[index] ?? to} to={to} />
          ))}
          {points.map((one, index) => (
            <circle
              key={index}
              role="img"
              aria-label={describe(one, fullTime(one.at))}
              tabIndex={index === current ? 0 : -1}
              className={styles.point}
              data-point={index}
              data-shown={index === shown || undefined}
              cx={percent(one.x)}
              cy={percent(1 - one.y)}
              r={points.length > 60 ? 2.5 : 4.5}
              onFocus={() => setShown(index)}
              onPointerEnter={() => setShown(index)}
            />
          ))}
        </svg>
      </div>
      <figcaption className={styles.detail}>{describe(point, shortTime(point.at))}</figcaption>
    </figure>
  )
}

function Stretch({ from, to }: { from: ScorePoint; to: ScorePoint }): ReactNode {
  return <line className={styles.line} x1={percent(from.x)} y1={percent(1 - from.y)} x2={percent(to.x)} y2={percent(1 - to.y)} />
}

function describe({ experience, score, version }: ScorePoint, at: string): string {
  return t.of100AfterARatingOfFor(experience, score, version, at)
}
