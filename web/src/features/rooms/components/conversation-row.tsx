import { type ReactNode, memo } from 'react'
import type { Row } from '@/feed/rows'
import { useMessage } from '@/feed/use-feed'
import { Answer } from './answer'
import { PendingMessage } from './pending-message'
import { PersonMessage } from './person-message'
import { RunRow } from './run-row'
import { SkippedRow } from './skipped-row'

interface ConversationRowProps {
  roomId: string
  row: Row
  previousId: string | null
  isMarked: boolean
}

export const ConversationRow = memo(function ConversationRow({ roomId, row, previousId, isMarked }: ConversationRowProps): ReactNode {
  switch (row.kind) {
    case 'message':
      return <MessageRow roomId={roomId} id={row.id} previousId={previousId} isMarked={isMarked} />
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
  isMarked: boolean
}

function MessageRow({ roomId, id, previousId, isMarked }: MessageRowProps): ReactNode {
  const message = useMessage(roomId, id)
  if (!message) return null
  if (message.author.kind === 'person') return <PersonMessage roomId={roomId} message={message} isMarked={isMarked} />
  return <Answer roomId={roomId} message={message} previousId={previousId} isMarked={isMarked} />
}
