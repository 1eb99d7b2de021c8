import { textOf } from '@/feed/message-text'
import type { RunState } from '@/feed/state'
import { useFeed, useRoom } from '@/feed/use-feed'

/** Posts the question again, to the same agent or to another one of the room; `null` if the question is unknown. */
export function useRetry(roomId: string, run: RunState | undefined): ((agentId?: string) => Promise<void>) | null {
  const feed = useFeed()
  const question = useRoom(roomId, (view) => (run?.messageId ? view.state?.messages.get(run.messageId) : undefined))
  const agentId = run?.agentId
  if (!question || !agentId) return null
  return (other = agentId) => feed.outbox(roomId).send({ text: textOf(question), attachments: question.attachments, mentions: [other], whenBusy: 'enqueue' })
}
