import type { ReactNode } from 'react'
import styles from './empty-state.module.css'

interface EmptyStateProps {
  title: string
  detail?: ReactNode
  /** What to do about it. */
  children?: ReactNode
}

/** Stands where a list would be that has nothing in it. */
export function EmptyState({ title, detail, children }: EmptyStateProps): ReactNode {
  return (
    <div className={styles.empty}>
      <p className={styles.title}>{title}</p>
      {detail && <p>{detail}</p>}
      {children}
    </div>
  )
}
