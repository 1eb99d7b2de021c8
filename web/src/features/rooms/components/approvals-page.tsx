import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { roomsQuery } from '@/lib/api/queries'
import { waitingRunsQuery } from '../api/waiting-runs'
import styles from './approvals-page.module.css'
import { WaitingRun } from './waiting-run'
import { t } from '../texts'

/** Everything that waits for a person, over all rooms. */
export function ApprovalsPage(): ReactNode {
  const { data: runs, error, refetch } = useQuery(waitingRunsQuery)
  const waiting = useQuery(roomsQuery).data?.filter((room) => room.waiting).map(({ id, head }) => `${id} ${head}`).join() ?? ''

  // The list of rooms is told at once what waits; the runs are read again then.
  useEffect(() => void refetch(), [waiting, refetch])

  return (
    <PageBody title={t.approvals} width="narrow">
      {error && <ProblemNote title={t.couldNotLoadApprovals} error={error} onRetry={() => void refetch()} />}
      {runs?.length === 0 && <EmptyState title={t.nothingIsWaitingForYou} />}
      {runs && runs.length > 0 && (
        <ul className={styles.list} aria-label={t.waitingForYouTitle}>
          {runs.map((run) => (
            <WaitingRun key={run.id} run={run} />
          ))}
        </ul>
      )}
      {!runs && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
    </PageBody>
  )
}
