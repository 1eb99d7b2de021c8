import { ChevronRight } from 'lucide-react'
import type { ReactNode } from 'react'
import styles from './trail.module.css'

/** Where one is, and the link to the page above, if there is one. */
export function Trail({ back, children }: { back?: ReactNode; children: ReactNode }): ReactNode {
  return (
    <div className={styles.trail}>
      {back && (
        <>
          {back}
          <ChevronRight size={14} aria-hidden />
        </>
      )}
      {children}
    </div>
  )
}
