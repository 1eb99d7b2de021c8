import { type ReactNode, memo } from 'react'
import type { Row } from '@/feed/rows'
import { useMessage } from '@/feed/use-feed'
import { Answer } from './answer'
import { PendingMessage } from './pending-message'
import { PersonMessage } from './person-message'
import { RunRow } from './run-row'
import styles from './conversation.module.css'
import { SkippedRow } from './skipped-row'
import { t } from '../texts'

interface ConversationRowProps {
  roomId: string
  row: Row
  previousId: string | null
  /** The journal number of the message that a link pointed to. */
  target: number | null
}

export const ConversationRow = memo(function ConversationRow({ roomId, row, previousId, target }: ConversationRowProps): ReactNode {
  switch (row.kind) {
    case 'message':
      return <MessageRow roomId={roomId} id={row.id} previousId={previousId} target={target} />
    case 'together':
      return (
        <div className={styles.together} role="group" aria-label={t.answersSideBySide(row.ids.length)}>
          {row.ids.map((id) => (
            <MessageRow key={id} roomId={roomId} id={id} previousId={previousId} target={target} />
          ))}
        </div>
      )
    case 'run':
      return <RunRow roomId={roomId} runId={row.id} previousId={previousId} />
    case 'skipped':
      return <SkippedRow roomId={roomId} />
    case 'pending':
      return <PendingMessage roomId={roomId} pending={row.pending} />
  }
})

interface MessageRowProps {
  roomId: string
  id: string
  previousId: string | null
  target: number | null
}

function MessageRow({ roomId, id, previousId, target }: MessageRowProps): ReactNode {
  const message = useMessage(roomId, id)
  if (!message) return null
  const isMarked = message.seq === target
  if (message.author.kind === 'person') return <PersonMessage roomId={roomId} message={message} isMarked={isMarked} />
  return <Answer roomId={roomId} message={message} previousId={previousId} isMarked={isMarked} />
}
