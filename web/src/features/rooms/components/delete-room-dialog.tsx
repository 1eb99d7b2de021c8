import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { ProblemText } from '@/components/ui/problem-text'
import type { Room } from '@/lib/api/types'
import { useAction } from '@/lib/use-action'
import { deleteRoom } from '../api/room-commands'

export function DeleteRoomDialog({ room, onClose, onDeleted }: { room: Room; onClose: () => void; onDeleted: () => void }): ReactNode {
  const { isBusy, reason, run } = useAction()
  const remove = async (): Promise<void> => {
    if (await run(() => deleteRoom(room.id))) onDeleted()
  }
  return (
    <ConfirmDialog title={`Delete ${room.name}?`} keep="Keep it" confirm="Delete the room" isBusy={isBusy} onConfirm={() => void remove()} onClose={onClose}>
      <p>What runs in it is stopped first. Its conversation is no longer shown anywhere.</p>
      <ProblemText text={reason} />
    </ConfirmDialog>
  )
}
