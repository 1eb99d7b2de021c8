import type { ReactNode } from 'react'
import { hueOf } from '@/lib/hue'
import styles from './agent-mark.module.css'

/** An agent's first letter in its own colour. The name beside it says who it is; this only helps to see it sooner. */
export function AgentMark({ id, name, size = 'normal' }: { id: string; name: string; size?: 'normal' | 'small' }): ReactNode {
  return (
    <span className={styles.mark} data-hue={hueOf(id)} data-size={size} aria-hidden>
      {[...name][0]?.toUpperCase() ?? '?'}
    </span>
  )
}
