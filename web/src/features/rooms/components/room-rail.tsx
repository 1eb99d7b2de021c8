import { useQuery } from '@tanstack/react-query'
import { Plus, Search, SquarePen } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { drawerStore } from '@/components/layout/drawer-store'
import { Button, IconButton } from '@/components/ui/button'
import { later } from '@/components/ui/later'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { RoomSummary } from '@/lib/api/types'
import { useNewChat } from '../model/use-new-chat'
import { RoomRailList } from './room-rail-list'
import { t } from '../texts'
import styles from './room-rail.module.css'

const none: readonly RoomSummary[] = []

const RoomDialog = later(async () => (await import('./room-dialog')).RoomDialog)

export function RoomRail({ foot }: { foot: ReactNode }): ReactNode {
  const { data: rooms, error, refetch } = useQuery(roomsQuery)
  const [isMaking, setIsMaking] = useState(false)
  const [text, setText] = useState('')
  const start = useNewChat()

  return (
    <>
      <div className={styles.head}>
        <span className={styles.name}>Greenroom</span>
        <div className={styles.actions}>
          <IconButton
            label={t.newChat}
            onClick={() => {
              drawerStore.set(false)
              start()
            }}
          >
            <SquarePen size={17} aria-hidden />
          </IconButton>
          <IconButton label={t.newRoom} onClick={() => setIsMaking(true)}>
            <Plus size={18} aria-hidden />
          </IconButton>
        </div>
      </div>
      <div className={styles.search}>
        <Search size={14} aria-hidden />
        <input
          type="search"
          aria-label={t.searchRooms}
          placeholder={t.searchRooms}
          value={text}
          dir="auto"
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => event.key === 'Escape' && setText('')}
        />
      </div>
      <RoomRailList rooms={rooms ?? none} text={text.trim()} />
      {error && !rooms && (
        <div className={styles.problem}>
          <p>{explain(error)}</p>
          <Button size="small" onClick={() => void refetch()}>
            {t.tryAgain}
          </Button>
        </div>
      )}
      <div className={styles.foot}>{foot}</div>
      {isMaking && <RoomDialog onClose={() => setIsMaking(false)} />}
    </>
  )
}
