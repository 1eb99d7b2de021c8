import type { ReactNode } from 'react'
import type { Project } from '@/lib/api/types'
import { tierWord } from '../model/isolation'
import styles from './tier-badge.module.css'

/** Which isolation is in force, in a word or two. */
export function TierBadge({ project: { isolation } }: { project: Project }): ReactNode {
  const isWeak = !isolation || isolation.tier === 'landlock' || isolation.tier === 'none'
  return (
    <span className={styles.badge} data-weak={isWeak || undefined}>
      {tierWord(isolation?.tier ?? null)}
    </span>
  )
}
