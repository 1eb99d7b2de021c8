import type { ReactNode } from 'react'
import { useRoom } from '@/feed/use-feed'
import { t } from '../texts'
import styles from './conversation-start.module.css'

export function ConversationStart({ roomId }: { roomId: string }): ReactNode {
  const isLoading = useRoom(roomId, (view) => view.isLoadingOlder)
  const hasAll = useRoom(roomId, (view) => view.state?.loadedFrom === 0)
  return <p className={styles.start}>{hasAll ? t.startOfConversation : isLoading ? t.loading : ''}</p>
}
