import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { EmptyState } from '@/components/ui/empty-state'
import { ProblemNote } from '@/components/ui/problem-note'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import { archivedRooms, organizeRoom } from '../api/room-commands'
import { t } from '../texts'
import styles from './archived-dialog.module.css'

/** Rooms that are out of the list, and the way back into it. */
export function ArchivedDialog({ onClose }: { onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const queryKey = queryKeys.rooms.archived
  const { data: rooms, error, refetch } = useQuery({ queryKey, queryFn: archivedRooms, staleTime: 0 })
  const restore = useMutation({
    mutationFn: (id: string) => organizeRoom(id, { archived: false }),
    onSettled: () => Promise.all([queries.invalidateQueries({ queryKey }), queries.invalidateQueries(roomsQuery)]),
  })
  return (
    <Dialog title={t.archivedRooms} onClose={onClose}>
      <div className={dialogs.body}>
        {error && <ProblemNote title={t.couldNotLoadRooms} error={error} onRetry={() => void refetch()} />}
        {rooms?.length === 0 && <EmptyState title={t.noArchivedRooms} />}
        <ul className={styles.list}>
          {rooms?.map((room) => (
            <li key={room.id}>
              <Link to="/rooms/$roomId" params={{ roomId: room.id }} dir="auto" onClick={onClose}>
                {room.name}
              </Link>
              <Button size="small" isBusy={restore.isPending && restore.variables === room.id} aria-label={t.unarchiveWith(room.name)} onClick={() => restore.mutate(room.id)}>
                {t.unarchive}
              </Button>
            </li>
          ))}
        </ul>
      </div>
    </Dialog>
  )
}
