import type { ReactNode } from 'react'
import { useRoom } from '@/feed/use-feed'
import { position } from '@/lib/format'
import { t } from '../texts'
import styles from './journal-position.module.css'

/** How far this page has read the journal, and whether it is behind. */
export function JournalPosition({ roomId }: { roomId: string }): ReactNode {
  const seq = useRoom(roomId, (view) => view.state?.seq ?? 0)
  const head = useRoom(roomId, (view) => view.state?.head ?? 0)
  if (seq === 0) return null
  const isBehind = head > seq
  return (
    <span className={styles.position} title={t.eventsOfThisRoomsJournalThatAre}>
      <span className="visually-hidden">{t.journalPosition} </span>
      {position(seq)}
      {isBehind && t.ofWith(position(head))}
    </span>
  )
}
