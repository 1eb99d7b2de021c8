import type { ReactNode } from 'react'
import { t } from '../texts'
import styles from './status-dot.module.css'

export type Status = 'idle' | 'working' | 'waiting' | 'failed' | 'offline'

const words: Record<Status, string> = {
  get idle() { return t.idle },
  get working() { return t.working },
  get waiting() { return t.waitingForYou },
  get failed() { return t.lastAnswerFailed },
  get offline() { return t.notConnected },
}

/** Shape tells as much as colour: a ring rests, a disc works, a square wants something. */
export function StatusDot({ status, label }: { status: Status; label?: string }): ReactNode {
  const text = label ?? words[status]
  return <span className={styles.dot} data-status={status} role="img" aria-label={text} title={text} />
}
