import type { ReactNode } from 'react'
import { t } from '../texts'
import styles from './experience.module.css'

/** How far training has brought a skill, 0 to 100. */
export function Experience({ value }: { value: number | null }): ReactNode {
  if (value === null) return <span className={styles.none}>{t.notRated}</span>
  return (
    <span className={styles.root}>
      <svg className={styles.bar} aria-hidden>
        <rect className={styles.ground} width="100%" height="100%" rx="3" />
        <rect className={styles.filled} width={`${value}%`} height="100%" rx="3" />
      </svg>
      {value}
      <span className="visually-hidden"> {t.of100}</span>
    </span>
  )
}
