import { Link } from '@tanstack/react-router'
import { MoreHorizontal } from 'lucide-react'
import { type ReactNode, memo } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { IconButton } from '@/components/ui/button'
import { type Point, menuPoint } from '@/components/ui/context-menu'
import { StatusDot } from '@/components/ui/status-dot'
import { useRoom } from '@/feed/use-feed'
import { shortTime } from '@/lib/format'
import type { RoomSummary } from '@/lib/api/types'
import { useStore } from '@/lib/store'
import { isUnread, readMarks } from '../model/read-marks'
import { lineOf } from '../model/room-status'
import { RenameField } from './rename-field'
import { t } from '../texts'
import styles from './room-rail.module.css'

interface RoomRailItemProps {
  room: RoomSummary
  isRenaming: boolean
  onRename: (id: string | null) => void
  onMenu: (room: RoomSummary, at: Point) => void
}

export const RoomRailItem = memo(function RoomRailItem({ room, isRenaming, onRename, onMenu }: RoomRailItemProps): ReactNode {
  const mark = useStore(readMarks)[room.id]
  const status = useRoom(room.id, (view) => lineOf(room, view.state).status)
  const text = useRoom(room.id, (view) => lineOf(room, view.state).text)
  const time = useRoom(room.id, (view) => lineOf(room, view.state).time)
  const isNew = useRoom(room.id, (view) => isUnread(lineOf(room, view.state).answer, mark))
  if (isRenaming) return <RenameField room={room} onDone={() => onRename(null)} />
  return (
    <div className={styles.entry}>
      <Link
        to="/rooms/$roomId"
        params={{ roomId: room.id }}
        className={styles.item}
        activeProps={{ 'aria-current': 'page' }}
        data-room={room.id}
        data-unread={isNew || undefined}
        onClick={() => drawerStore.set(false)}
        onDoubleClick={() => onRename(room.id)}
        onKeyDown={(event) => event.key === 'F2' && onRename(room.id)}
        onContextMenu={(event) => {
          event.preventDefault()
          onMenu(room, menuPoint(event))
        }}
      >
        <StatusDot status={status} />
        <span className={styles.room} dir="auto">{room.name}</span>
        <time className={styles.time} dateTime={time}>
          {shortTime(time)}
        </time>
        <span className={styles.line} dir="auto">{text || t.noMessagesYet}</span>
        {isNew && <span className={styles.unread} role="img" aria-label={t.unread} />}
      </Link>
      <IconButton label={t.actionsFor(room.name)} className={styles.more} aria-haspopup="menu" onClick={(event) => onMenu(room, menuPoint(event))}>
        <MoreHorizontal size={15} aria-hidden />
      </IconButton>
    </div>
  )
})
