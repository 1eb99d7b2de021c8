import { Link } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import type { ReactNode } from 'react'
import styles from './trail.module.css'

/** Where one is, and the way back. */
export function Trail({ children }: { children: ReactNode }): ReactNode {
  return (
    <div className={styles.trail}>
      <Link to="/agents" className={styles.back}>
        Agents
      </Link>
      <ChevronRight size={14} aria-hidden className={styles.arrow} />
      {children}
    </div>
  )
}
