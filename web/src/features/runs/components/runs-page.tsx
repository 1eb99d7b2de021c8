import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { useNow } from '@/lib/use-now'
import { runsQuery } from '../api/runs'
import { type RunFilter, isEnded, isNarrowed, newerThan } from '../model/run-filter'
import { useFreshRuns } from '../model/use-fresh-runs'
import { RunFilters } from './run-filters'
import { RunTable } from './run-table'
import { t } from '../texts'
import styles from './runs-page.module.css'

/** What every agent did, newest first. The address holds what one is looking for. */
export function RunsPage({ filter }: { filter: RunFilter }): ReactNode {
  const navigate = useNavigate()
  useFreshRuns()
  const { data, error, isPlaceholderData, refetch } = useQuery(runsQuery(filter))
  const now = useNow(data?.runs.some((run) => !isEnded(run.status)) ?? false)
  const page = data && newerThan(data, filter.since, now)
  const go = (search: RunFilter): void => void navigate({ to: '/runs', search })

  return (
    <PageBody title={t.runs}>
      <RunFilters filter={filter} onChange={go} />
      {error && <ProblemNote title={t.couldNotLoadRuns} error={error} onRetry={() => void refetch()} />}
      {page && page.runs.length > 0 && (
        <div className={styles.list} aria-busy={isPlaceholderData}>
          <RunTable runs={page.runs} now={now} />
        </div>
      )}
      {page?.runs.length === 0 && <Nothing filter={filter} />}
      {!data && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      <nav className={styles.pages} aria-label={t.pagesOfRuns}>
        {filter.before !== undefined && (
          <Link to="/runs" search={{ ...filter, before: undefined }}>
            {t.newestRuns}
          </Link>
        )}
        {page?.next && (
          <Link to="/runs" search={{ ...filter, before: page.next }}>
            {t.olderRuns}
          </Link>
        )}
      </nav>
    </PageBody>
  )
}

function Nothing({ filter }: { filter: RunFilter }): ReactNode {
  if (isNarrowed(filter)) {
    return (
      <EmptyState title={t.noRunsMatch}>
        <Link to="/runs">{t.showAllRuns}</Link>
      </EmptyState>
    )
  }
  return (
    <EmptyState title={t.noRunsYet} detail={t.eachAnswerOfAnAgentIsARun}>
      <Link to="/">{t.sendAMessageInARoom}</Link>
    </EmptyState>
  )
}
