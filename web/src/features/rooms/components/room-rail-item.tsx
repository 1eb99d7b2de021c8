import { Link } from '@tanstack/react-router'
import { type ReactNode, memo } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { StatusDot } from '@/components/ui/status-dot'
import { useRoom } from '@/feed/use-feed'
import type { Room } from '@/lib/api/types'
import { shortTime } from '@/lib/format'
import { useStore } from '@/lib/store'
import { readMarks, unreadIn } from '../model/read-marks'
import { lastLineOf, lastTimeOf, statusOf } from '../model/room-status'
import styles from './room-rail.module.css'

export const RoomRailItem = memo(function RoomRailItem({ room }: { room: Room }): ReactNode {
  const mark = useStore(readMarks)[room.id]
  const status = useRoom(room.id, (view) => statusOf(view.state))
  const line = useRoom(room.id, (view) => lastLineOf(view.state))
  const time = useRoom(room.id, (view) => lastTimeOf(view.state)) ?? room.updated_at
  const isKnown = useRoom(room.id, (view) => view.state !== null)
  const unread = useRoom(room.id, (view) => unreadIn(view.state, mark))
  return (
    <li>
      <Link
        to="/rooms/$roomId"
        params={{ roomId: room.id }}
        className={styles.item}
        activeProps={{ 'aria-current': 'page' }}
        data-unread={unread > 0 || undefined}
        onClick={() => drawerStore.set(false)}
      >
        <StatusDot status={status} />
        <span className={styles.room}>{room.name}</span>
        <time className={styles.time} dateTime={time}>
          {shortTime(time)}
        </time>
        <span className={styles.line}>{line || (isKnown ? 'Nothing said yet' : '\u00A0')}</span>
        {unread > 0 && (
          <span className={styles.unread}>
            {unread}
            <span className="visually-hidden"> unread</span>
          </span>
        )}
      </Link>
    </li>
  )
})
