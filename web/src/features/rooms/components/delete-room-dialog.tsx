import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { explain } from '@/lib/api/client'
import type { Room } from '@/lib/api/types'
import { deleteRoom } from '../api/room-commands'
import styles from './room-dialog.module.css'

export function DeleteRoomDialog({ room, onClose, onDeleted }: { room: Room; onClose: () => void; onDeleted: () => void }): ReactNode {
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const remove = async (): Promise<void> => {
    setIsBusy(true)
    try {
      await deleteRoom(room.id)
      onDeleted()
    } catch (error) {
      setProblem(explain(error))
      setIsBusy(false)
    }
  }
  return (
    <Dialog title={`Delete ${room.name}?`} onClose={onClose}>
      <div className={styles.form}>
        <p>What runs in it is stopped first. Its conversation is no longer shown anywhere.</p>
        {problem && (
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        <div className={styles.actions}>
          <Button onClick={onClose}>Keep it</Button>
          <Button look="danger" isBusy={isBusy} onClick={() => void remove()}>
            Delete the room
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
