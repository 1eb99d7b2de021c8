import type { ReactNode } from 'react'
import { dayTitle } from '@/lib/format'
import styles from './day-line.module.css'

/** Between messages of different days. */
export function DayLine({ time }: { time: string }): ReactNode {
  return (
    <p className={styles.day}>
      <time dateTime={time.slice(0, 10)}>{dayTitle(time)}</time>
    </p>
  )
}
