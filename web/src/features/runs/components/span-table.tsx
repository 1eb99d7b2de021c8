import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from '@/components/ui/button'
import { duration } from '@/lib/format'
import { type Bar, nameOf } from '../model/timeline'
import { t } from '../texts'
import styles from './span-table.module.css'

/** More than this is asked for: a long run has thousands. */
const first = 100

export function SpanTable({ bars, chosen }: { bars: readonly Bar[]; chosen: number | null }): ReactNode {
  const [isWhole, setIsWhole] = useState(false)
  const table = useRef<HTMLTableElement>(null)
  const shown = isWhole || (chosen !== null && chosen >= first) ? bars : bars.slice(0, first)

  useEffect(() => {
    if (chosen !== null) table.current?.querySelector('[data-chosen]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])

  return (
    <>
      <table className={styles.table} ref={table}>
        <caption className="visually-hidden">{t.theStepsOfThisRun}</caption>
        <thead>
          <tr>
            <th scope="col">{t.step}</th>
            <th scope="col">{t.fromTitle}</th>
            <th scope="col">{t.tookTitle}</th>
            <th scope="col">{t.result}</th>
          </tr>
        </thead>
        <tbody>
          {shown.map((bar) => (
            <tr key={bar.index} data-chosen={bar.index === chosen || undefined}>
              <th scope="row">{nameOf(bar.span)}</th>
              <td>{duration(bar.span.from_ms)}</td>
              <td>{duration(bar.millis)}</td>
              <td data-error={bar.span.is_error || undefined}>{resultOf(bar)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < bars.length && (
        <Button size="small" onClick={() => setIsWhole(true)}>{t.showAllSteps(bars.length)}</Button>
      )}
    </>
  )
}

function resultOf({ span }: Bar): string {
  if (span.is_error) return 'failed'
  return span.to_ms === null || span.to_ms === undefined ? t.runningWord : t.done
}
