import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Split } from 'lucide-react'
import type { ReactNode } from 'react'
import quietLink from '@/components/ui/quiet-link.module.css'
import { roomsQuery } from '@/lib/api/queries'
import type { Room } from '@/lib/api/types'
import { t } from '../texts'
import styles from './room-project.module.css'

/** The way back to the message at which a room was branched off. */
export function BranchedFrom({ from }: { from: NonNullable<Room['forked_from']> }): ReactNode {
  const name = useQuery(roomsQuery).data?.find((room) => room.id === from.room_id)?.name
  return (
    <Link to="/rooms/$roomId" params={{ roomId: from.room_id }} search={{ m: from.seq }} className={quietLink.link} title={t.branchedFrom(name ?? t.anotherRoom)}>
      <Split size={15} aria-hidden />
      <span className="visually-hidden">{t.branchedFrom('')}</span>
      <span className={styles.name} dir="auto">
        {name ?? t.anotherRoom}
      </span>
    </Link>
  )
}
