import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import type { Room } from '@/lib/api/types'
import { deleteRoom } from '../api/room-commands'

export function DeleteRoomDialog({ room, onClose, onDeleted }: { room: Room; onClose: () => void; onDeleted: () => void }): ReactNode {
  const remove = useMutation({ mutationFn: () => deleteRoom(room.id), onSuccess: onDeleted })
  return (
    <ConfirmDialog title={`Delete ${room.name}?`} keep="Cancel" confirm="Delete room" isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>Running work is stopped and the conversation is deleted for everyone.</p>
    </ConfirmDialog>
  )
}
