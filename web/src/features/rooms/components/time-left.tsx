import type { ReactNode } from 'react'
import { countdown } from '@/lib/format'
import { useNow } from '@/lib/use-now'
import { t } from '../texts'

/** Counts down to the moment at which no answer becomes a no. */
export function TimeLeft({ until, isQuestion = false, className }: { until: string; isQuestion?: boolean; className?: string }): ReactNode {
  const left = new Date(until).getTime() - useNow(true, 1000)
  const label = isQuestion ? t.expiresIn : t.autoDeniedIn
  return <span className={className}>{left > 0 ? `${label} ${countdown(left)}` : t.timedOut}</span>
}
