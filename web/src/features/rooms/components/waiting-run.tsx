import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import { textOf } from '@/feed/message-text'
import { useFeed, useRoom, useRun } from '@/feed/use-feed'
import type { NamedRun } from '@/lib/api/types'
import { ApprovalCard } from './approval-card'
import { t } from '../texts'
import styles from './approvals-page.module.css'

/** One run that waits, with what it asks. Its room is read for that, as if it were open. */
export function WaitingRun({ run }: { run: NamedRun }): ReactNode {
  const feed = useFeed()
  const state = useRun(run.room_id, run.id)
  const question = useRoom(run.room_id, (view) => view.state?.messages.get(run.message_id))
  const open = state?.approvals.filter((approval) => approval.decision === null) ?? []

  useEffect(() => {
    feed.room(run.room_id).open()
  }, [feed, run.room_id])

  return (
    <li className={styles.run}>
      <p className={styles.head}>
        <AgentMark id={run.agent_id} name={run.agent_name} size="small" />
        <strong>{run.agent_name}</strong>
        <span>{t.inWord}</span>
        <Link to="/rooms/$roomId" params={{ roomId: run.room_id }} dir="auto">
          {run.room_name}
        </Link>
      </p>
      {question && (
        <p className={styles.question} dir="auto">
          {textOf(question).slice(0, 200)}
        </p>
      )}
      {open.map((approval) => (
        <ApprovalCard key={approval.id} approval={approval} agent={run.agent_name} isLive />
      ))}
      {state?.whole && open.length === 0 && <p className={styles.question}>{t.answeredTitle}</p>}
    </li>
  )
}
