import { CornerDownRight } from 'lucide-react'
import type { ReactNode } from 'react'
import { textOf } from '@/feed/message-text'
import { useRoom } from '@/feed/use-feed'
import styles from './replies-to.module.css'

/** Which message an answer is to, where that is not the one right above it. */
export function RepliesTo({ roomId, messageId, previousId }: { roomId: string; messageId: string | null; previousId: string | null }): ReactNode {
  const question = useRoom(roomId, (view) => (messageId === null ? undefined : view.state?.messages.get(messageId)))
  if (!question || messageId === previousId) return null
  return (
    <p className={styles.reply}>
      <CornerDownRight size={13} aria-hidden />
      <span dir="auto">{textOf(question).slice(0, 140)}</span>
    </p>
  )
}
