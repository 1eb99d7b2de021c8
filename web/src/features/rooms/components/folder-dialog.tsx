import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { roomsQuery } from '@/lib/api/queries'
import type { RoomSummary } from '@/lib/api/types'
import { organizeRoom } from '../api/room-commands'
import { t } from '../texts'

/** Puts a room into a folder of the list, a new one or one that other rooms are in. */
export function FolderDialog({ room, onClose }: { room: RoomSummary; onClose: () => void }): ReactNode {
  const [folder, setFolder] = useState(room.folder ?? '')
  const queries = useQueryClient()
  const listId = useId()
  const known = [...new Set((useQuery(roomsQuery).data ?? []).flatMap((other) => other.folder ?? []))].toSorted()
  const save = useMutation({
    mutationFn: () => organizeRoom(room.id, { folder: folder.trim() || null }),
    onSuccess: async () => {
      await queries.invalidateQueries(roomsQuery)
      onClose()
    },
  })
  return (
    <Dialog title={t.moveToFolder} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          save.mutate()
        }}
      >
        <Field label={t.folder} list={listId} value={folder} maxLength={100} autoComplete="off" dir="auto" hint={t.leaveEmptyForNoFolder} onChange={(event) => setFolder(event.target.value)} />
        <datalist id={listId}>
          {known.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </datalist>
        <ProblemText error={save.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending}>
            {t.save}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
