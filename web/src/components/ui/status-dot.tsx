import type { ReactNode } from 'react'
import styles from './status-dot.module.css'

export type Status = 'idle' | 'working' | 'waiting' | 'failed' | 'offline'

const words: Record<Status, string> = {
  idle: 'Idle',
  working: 'Working',
  waiting: 'Waiting for you',
  failed: 'Last answer failed',
  offline: 'Not connected',
}

/** Shape tells as much as colour: a ring rests, a disc works, a square wants something. */
export function StatusDot({ status, label }: { status: Status; label?: string }): ReactNode {
  const text = label ?? words[status]
  return <span className={styles.dot} data-status={status} role="img" aria-label={text} title={text} />
}
