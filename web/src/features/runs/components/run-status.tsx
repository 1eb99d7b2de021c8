import { Ban, CircleCheck, CircleX, Clock, Hand, type LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import { StatusDot } from '@/components/ui/status-dot'
import type { RunStatus as Status } from '@/lib/api/types'
import { statusWords } from '../model/run-words'
import styles from './run-status.module.css'

const icons: Record<Exclude<Status, 'running'>, LucideIcon> = {
  queued: Clock,
  waiting_for_approval: Hand,
  waiting_for_quota: Clock,
  completed: CircleCheck,
  failed: CircleX,
  cancelled: Ban,
  interrupted: Ban,
}

/** A word and a shape; colour only helps. */
export function RunStatus({ status }: { status: Status }): ReactNode {
  return (
    <span className={styles.status} data-status={status}>
      <Mark status={status} />
      {statusWords[status]}
    </span>
  )
}

function Mark({ status }: { status: Status }): ReactNode {
  // The text next to it has the same meaning.
  if (status === 'running') return <span className={styles.dot} aria-hidden><StatusDot status="working" label="" /></span>
  const Icon = icons[status]
  return <Icon size={15} aria-hidden />
}
