import type { ReactNode } from 'react'
import { classNames } from '@/lib/class-names'
import styles from './page-column.module.css'

/** What scrolls below a page's bar. `className` sets the width, the padding and the gaps of the column. */
export function PageColumn({ className, children }: { className: string | undefined; children: ReactNode }): ReactNode {
  return (
    <div className={styles.scroller}>
      <div className={classNames(styles.column, className)}>{children}</div>
    </div>
  )
}
