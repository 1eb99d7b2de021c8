import { useMutation } from '@tanstack/react-query'
import { X } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { textOf } from '@/feed/message-text'
import { useFeed } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import type { Room } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { reorderMessages, skipCell } from '../api/tape'
import { stopRun } from '../api/room-commands'
import { putInComposer } from '../model/composer-insert'
import { useReorder } from '../model/use-reorder'
import { useTape } from '../model/use-tape'
import { type WaitingMessage, waitingMessages } from '../model/waiting-messages'
import { MoveButtons } from './move-buttons'
import { t } from '../texts'
import styles from './queue-list.module.css'

const shownLength = 80

/** The messages that wait for their answers: they are moved by buttons and by dragging, and cancelled. */
export function QueueList({ room }: { room: Room }): ReactNode {
  const messages = useFeed().room(room.id).snapshot().state?.messages
  const { data: tape, keep, refresh } = useTape(room.id)
  const waiting = tape ? waitingMessages(tape.cells) : []
  const problem = (error: Error): void => notify(explain(error), 'problem')
  const reorder = useMutation({
    mutationFn: (order: string[]) => reorderMessages(room.id, order),
    onSuccess: keep,
    onError: (error) => {
      // One of them may have started in the meantime.
      void refresh()
      problem(error)
    },
  })
  const textOfMessage = (id: string): string => {
    const message = messages?.get(id)
    return message ? textOf(message) : ''
  }
  const cancel = useMutation({
    mutationFn: async ({ runs, cells }: WaitingMessage) => {
      for (const cell of cells) await skipCell(room.id, cell)
      for (const run of runs) await stopRun(run)
    },
    // What was not answered goes back to where it was typed.
    onSuccess: (_, { id }) => putInComposer(room.id, textOfMessage(id)),
    onError: problem,
  })
  const { list, press, item } = useReorder(waiting.map(({ id }) => id), reorder.isPending, (order) => reorder.mutate(order))
  if (waiting.length < 2) return null

  return (
    <section className={styles.queue} aria-label={t.waitingMessages}>
      <ol ref={list}>
        {waiting.map((message, place) => {
          const text = textOfMessage(message.id)
          const short = text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
          return (
            <li key={message.id} {...item(message.id, text)}>
              <span className={styles.text} dir="auto">
                {short}
              </span>
              <MoveButtons name={short} place={place} count={waiting.length} isBusy={reorder.isPending} onMove={(to) => press(message.id, to)} />
              <IconButton label={t.cancelMessage(short)} disabled={cancel.isPending} onClick={() => cancel.mutate(message)}>
                <X size={14} aria-hidden />
              </IconButton>
            </li>
          )
        })}
      </ol>
    </section>
  )
}
