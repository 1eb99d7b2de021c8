import { Link } from '@tanstack/react-router'
import { type ReactNode, memo } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { StatusDot } from '@/components/ui/status-dot'
import { useRoom } from '@/feed/use-feed'
import { shortTime } from '@/lib/format'
import type { RoomSummary } from '@/lib/api/types'
import { useStore } from '@/lib/store'
import { isUnread, readMarks } from '../model/read-marks'
import { lineOf } from '../model/room-status'
import { t } from '../texts'
import styles from './room-rail.module.css'

export const RoomRailItem = memo(function RoomRailItem({ room }: { room: RoomSummary }): ReactNode {
  const mark = useStore(readMarks)[room.id]
  const status = useRoom(room.id, (view) => lineOf(room, view.state).status)
  const text = useRoom(room.id, (view) => lineOf(room, view.state).text)
  const time = useRoom(room.id, (view) => lineOf(room, view.state).time)
  const isNew = useRoom(room.id, (view) => isUnread(lineOf(room, view.state).answer, mark))
  return (
    <li>
      <Link
        to="/rooms/$roomId"
        params={{ roomId: room.id }}
        className={styles.item}
        activeProps={{ 'aria-current': 'page' }}
        data-unread={isNew || undefined}
        onClick={() => drawerStore.set(false)}
      >
        <StatusDot status={status} />
        <span className={styles.room} dir="auto">{room.name}</span>
        <time className={styles.time} dateTime={time}>
          {shortTime(time)}
        </time>
        <span className={styles.line} dir="auto">{text || t.noMessagesYet}</span>
        {isNew && <span className={styles.unread} role="img" aria-label={t.unread} />}
      </Link>
    </li>
  )
})
