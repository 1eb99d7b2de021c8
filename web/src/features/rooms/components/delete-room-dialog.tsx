import { useMutation } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import type { Room } from '@/lib/api/types'
import { deleteRoom } from '../api/room-commands'
import { t } from '../texts'

export function DeleteRoomDialog({ room, onClose, onDeleted }: { room: Room; onClose: () => void; onDeleted: () => void }): ReactNode {
  const remove = useMutation({ mutationFn: () => deleteRoom(room.id), onSuccess: onDeleted })
  return (
    <ConfirmDialog title={t.delete(room.name)} keep={t.cancel} confirm={t.deleteRoom} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.runningWorkIsStoppedAndTheConversation}</p>
    </ConfirmDialog>
  )
}
