import { Link } from '@tanstack/react-router'
import { SquarePen } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import { StatusDot } from '@/components/ui/status-dot'
import { EmptyState } from '@/components/ui/empty-state'
import type { RoomSummary } from '@/lib/api/types'
import { activeAt } from '@/lib/room-list'
import { shortTime } from '@/lib/format'
import { t } from '../texts'
import styles from './projects-page.module.css'

/** The rooms whose agents work in the project. */
export function RoomsTab({ rooms, onNewRoom }: { rooms: readonly RoomSummary[]; onNewRoom: () => void }): ReactNode {
  return (
    <Section
      isCompact
      title={t.rooms}
      lead={t.agentsInTheseRoomsWorkHere}
      action={
        <Button onClick={onNewRoom}>
          <SquarePen size={15} aria-hidden />
          {t.newChatHere}
        </Button>
      }
    >
      {rooms.length === 0 ? (
        <EmptyState title={t.noRoomsYet} />
      ) : (
        <ul className={styles.list} aria-label={t.rooms}>
          {rooms.map((room) => (
            <li key={room.id} className={styles.project}>
              <StatusDot status={room.waiting ? 'waiting' : room.busy ? 'working' : room.failed ? 'failed' : 'idle'} />
              <div className={styles.what}>
                <Link to="/rooms/$roomId" params={{ roomId: room.id }} className={styles.name} dir="auto">
                  {room.name}
                </Link>
              </div>
              <time className={styles.figures} dateTime={activeAt(room)}>
                {shortTime(activeAt(room))}
              </time>
            </li>
          ))}
        </ul>
      )}
    </Section>
  )
}
