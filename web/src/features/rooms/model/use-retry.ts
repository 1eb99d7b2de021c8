import { type RunState, textOf } from '@/feed/state'
import { useFeed, useRoom } from '@/feed/use-feed'

/** Says the question again to the same agent, or nothing where the question is not known. */
export function useRetry(roomId: string, run: RunState | undefined): (() => Promise<void>) | null {
  const feed = useFeed()
  const question = useRoom(roomId, (view) => (run?.messageId ? view.state?.messages.get(run.messageId) : undefined))
  const agentId = run?.agentId
  if (!question || !agentId) return null
  return () => feed.outbox(roomId).send({ text: textOf(question), attachments: question.attachments, mentions: [agentId], whenBusy: 'enqueue' })
}
