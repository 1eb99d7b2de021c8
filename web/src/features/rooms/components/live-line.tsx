import { type ReactNode, useEffect, useState } from 'react'
import { StatusDot } from '@/components/ui/status-dot'
import type { Message, RunState } from '@/feed/state'
import { count, duration, tokens } from '@/lib/format'
import styles from './live-line.module.css'

/** What an answer is doing right now. Something that lives must be seen to live. */
export function LiveLine({ message, run }: { message: Message; run: RunState | undefined }): ReactNode {
  const since = useElapsed(run?.startedAt ?? message.createdAt)
  const isWaiting = run?.status === 'waiting_for_approval'
  const used = run ? tokens(run.usage) : 0
  return (
    <p className={styles.live} data-waiting={isWaiting || undefined}>
      <StatusDot status={isWaiting ? 'waiting' : 'working'} />
      <span>{isWaiting ? 'Waits for you' : doing(message, run)}</span>
      <span className={styles.detail}>{duration(since)}</span>
      {used > 0 && <span className={styles.detail}>{count(used)} tokens</span>}
    </p>
  )
}

function doing(message: Message, run: RunState | undefined): string {
  if (run?.activity) return run.activity
  const last = message.parts.at(-1)
  if (last?.type === 'tool' && last.result === null) return `Runs ${last.name}`
  if (last?.type === 'thinking') return 'Thinks'
  if (last?.type === 'text') return 'Writes'
  return 'Begins'
}

/** Twice a second is often enough for this clock. */
function useElapsed(since: string): number {
  const [now, setNow] = useState(() => Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(timer)
  }, [])
  return Math.max(0, now - new Date(since).getTime())
}
