import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef } from 'react'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { RoomSummary } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { nameRoom } from '../model/new-chat'
import { t } from '../texts'
import styles from './room-rail.module.css'

/** Stands in the place of a room's line: Enter or leaving it saves, Escape leaves the name as it was. */
export function RenameField({ room, onDone }: { room: RoomSummary; onDone: () => void }): ReactNode {
  const field = useRef<HTMLInputElement>(null)
  const queries = useQueryClient()
  const isDone = useRef(false)
  const save = useMutation({
    mutationFn: (name: string) => nameRoom(room.id, name),
    onSuccess: () => queries.invalidateQueries(roomsQuery),
    onError: (error) => notify(t.theRoomWasNotRenamed(explain(error)), 'problem'),
  })

  useEffect(() => field.current?.select(), [])

  const finish = (isSaved: boolean): void => {
    if (isDone.current) return
    isDone.current = true
    const name = field.current?.value.trim() ?? ''
    if (isSaved && name !== '' && name !== room.name) save.mutate(name)
    onDone()
    requestAnimationFrame(() => document.querySelector<HTMLElement>(`[data-room="${room.id}"]`)?.focus())
  }

  return (
    <input
      ref={field}
      className={styles.rename}
      aria-label={t.nameOf(room.name)}
      defaultValue={room.name}
      maxLength={120}
      dir="auto"
      autoComplete="off"
      // oxlint-disable-next-line jsx-a11y/no-autofocus -- the person asked for it
      autoFocus
      onBlur={() => finish(true)}
      onKeyDown={(event) => {
        if (event.key === 'Enter') finish(true)
        else if (event.key === 'Escape') finish(false)
        else return
        event.preventDefault()
        event.stopPropagation()
      }}
    />
  )
}
