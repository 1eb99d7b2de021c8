import { ArrowDown } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { useRoom } from '@/feed/use-feed'
import { statusOf } from '../model/room-status'
import { t } from '../texts'
import styles from './new-messages.module.css'

/** Shown while scrolled up; created each time the user leaves the end, and counts messages from there. */
export function NewMessages({ roomId, onJump }: { roomId: string; onJump: () => void }): ReactNode {
  const count = useRoom(roomId, (view) => view.state?.order.length ?? 0)
  const last = useRoom(roomId, (view) => view.state?.order.at(-1))
  const isAsking = useRoom(roomId, (view) => statusOf(view.state) === 'waiting')
  const isLive = useRoom(roomId, (view) => view.state?.messages.get(last ?? '')?.status === 'streaming')
  const [left] = useState({ count, last })
  const isNew = last !== left.last
  const label = isAsking ? t.approvalNeededBelow : isNew ? newLabel(count - left.count) : isLive ? t.newTextBelow : t.jumpToLatest
  return (
    <div className={styles.place}>
      <Button size="small" look={isNew || isAsking ? 'primary' : 'plain'} className={styles.button} onClick={onJump}>
        <ArrowDown size={14} aria-hidden />
        {label}
      </Button>
    </div>
  )
}

function newLabel(count: number): string {
  return count === 1 ? t.n1NewMessage : t.newMessages(Math.max(count, 1))
}
