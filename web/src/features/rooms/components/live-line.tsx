import { type ReactNode } from 'react'
import { StatusDot } from '@/components/ui/status-dot'
import type { Message, RunState } from '@/feed/state'
import { useConnection } from '@/feed/use-feed'
import { count, duration, tokens } from '@/lib/format'
import { useNow } from '@/lib/use-now'
import { t } from '../texts'
import styles from './live-line.module.css'

/** What an answer is doing right now. Without a connection nothing is known of that, so nothing is counted. */
export function LiveLine({ message, run }: { message: Message; run: RunState | undefined }): ReactNode {
  const isConnected = useConnection().state === 'connected'
  const now = useNow(isConnected)
  const waiting = run?.status === 'waiting_for_approval' ? run.approvals.find((approval) => approval.decision === null) : undefined
  const isWaiting = run?.status === 'waiting_for_approval'
  const since = waiting?.requestedAt ?? run?.startedAt ?? message.createdAt
  const used = run ? tokens(run.usage) : 0
  if (!isConnected) {
    return (
      <p className={styles.live}>
        <StatusDot status="offline" />
        <span>{t.notConnectedTheAnswerMayHaveGone}</span>
      </p>
    )
  }
  return (
    <p className={styles.live} data-waiting={isWaiting || undefined}>
      <StatusDot status={isWaiting ? 'waiting' : 'working'} />
      <span>{isWaiting ? t.waitingForYouTitle : doing(message, run)}</span>
      <span className={styles.detail}>{duration(Math.max(0, now - new Date(since).getTime()))}</span>
      {used > 0 && <span className={styles.detail}>{t.tokensWith(count(used))}</span>}
    </p>
  )
}

function doing(message: Message, run: RunState | undefined): string {
  if (run?.activity) return run.activity
  const last = message.parts.at(-1)
  if (last?.type === 'tool' && last.result === null) return t.runningWith(last.name)
  if (last?.type === 'thinking') return t.thinking
  if (last?.type === 'text') return t.writing
  return t.starting
}
