import { useInfiniteQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { CopyButton } from '@/components/ui/copy-button'
import { Dialog } from '@/components/ui/dialog'
import { explain } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { rawEvents } from '../api/room-commands'
import { t } from '../texts'
import styles from './events-dialog.module.css'

const pageLimit = 300

interface EventsDialogProps {
  roomId: string
  after: number
  runId: string | null
  onClose: () => void
}

/** The journal itself: every event of one run, with what the provider sent. */
export function EventsDialog({ roomId, after, runId, onClose }: EventsDialogProps): ReactNode {
  const query = useInfiniteQuery({
    queryKey: queryKeys.rooms.events(roomId, runId, after),
    queryFn: ({ pageParam }) => rawEvents(roomId, pageParam, pageLimit),
    initialPageParam: after,
    getNextPageParam: (last) => {
      const end = last.events.find((event) => event.run_id === runId && /^run_(completed|failed|cancelled|interrupted)$/.test(event.type))
      const seq = last.events.at(-1)?.seq
      return end || seq === undefined || seq >= last.head ? undefined : seq
    },
    staleTime: 0,
    gcTime: 0,
  })
  const events = query.data?.pages.flatMap((page) => page.events).filter((event) => event.run_id === runId) ?? []

  return (
    <Dialog title={t.events} width="wide" onClose={onClose}>
      <div className={styles.bar}>
        <span>{query.isLoading ? t.loading : t.eventsWith(events.length, query.hasNextPage ? t.soFar : '')}</span>
        <CopyButton text={() => JSON.stringify(events, null, 2)} label={t.copyAllAsJson} />
      </div>
      {query.error && <p className={styles.problem}>{explain(query.error)}</p>}
      <ol className={styles.list}>
        {events.map((event) => (
          <li key={event.id}>
            <details>
              <summary>
                <span className={styles.seq}>{event.seq}</span>
                <span className={styles.type}>{event.type}</span>
                <code className={styles.brief}>{JSON.stringify(event.data).slice(0, 200)}</code>
              </summary>
              <pre>{JSON.stringify(event, null, 2)}</pre>
            </details>
          </li>
        ))}
      </ol>
      {query.hasNextPage && (
        <div className={styles.more}>
          <Button isBusy={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            {t.loadMore}
          </Button>
        </div>
      )}
    </Dialog>
  )
}
