import type { ReactNode } from 'react'
import { hueOf } from '@/lib/hue'
import styles from './agent-mark.module.css'

/** The agent's first letter in its own color. The name is next to it; this only helps to recognize the agent. */
export function AgentMark({ id, name, size = 'normal' }: { id: string; name: string; size?: 'normal' | 'small' }): ReactNode {
  return (
    <span className={styles.mark} data-hue={hueOf(id)} data-size={size} aria-hidden>
      {[...name][0]?.toUpperCase() ?? '?'}
    </span>
  )
}
