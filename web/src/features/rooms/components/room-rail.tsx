import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import { RoomDialog } from './room-dialog'
import { RoomRailItem } from './room-rail-item'
import styles from './room-rail.module.css'

export function RoomRail({ foot }: { foot: ReactNode }): ReactNode {
  const { data: rooms, error, refetch } = useQuery(roomsQuery)
  const [isMaking, setIsMaking] = useState(false)

  return (
    <>
      <div className={styles.head}>
        <span className={styles.name}>Greenroom</span>
        <IconButton label="New room" onClick={() => setIsMaking(true)}>
          <Plus size={18} aria-hidden />
        </IconButton>
      </div>
      <ul className={styles.list}>
        {rooms?.map((room) => (
          <RoomRailItem key={room.id} room={room} />
        ))}
      </ul>
      {error && !rooms && (
        <div className={styles.problem}>
          <p>{explain(error)}</p>
          <Button size="small" onClick={() => void refetch()}>
            Try again
          </Button>
        </div>
      )}
      <div className={styles.foot}>{foot}</div>
      {isMaking && <RoomDialog onClose={() => setIsMaking(false)} />}
    </>
  )
}
