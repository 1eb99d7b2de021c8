import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import { auditQuery } from '../api/audit'
import { tokensQuery } from '../api/settings'
import type { AuditFilter } from '../model/audit-filter'
import type { AuditNames } from '../model/audit-sentence'
import { SecurityLogEntry } from './security-log-entry'
import { SecurityLogFilters } from './security-log-filters'
import { t } from '../texts'
import styles from './security-log.module.css'

/** Who did what, by which credential and from where. For owners and admins. */
export function SecurityLogPage({ filter }: { filter: AuditFilter }): ReactNode {
  const navigate = useNavigate()
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(auditQuery(filter))
  const names = useNames()
  const entries = data?.pages.flatMap((page) => page.entries) ?? []
  return (
    <PageBody title={t.securityLog} width="narrow" back={<Link to="/settings">{t.settings}</Link>}>
      <p className={styles.lead}>{t.signInsRefusedRequestsTokensApprovalsAndSentence}</p>
      <SecurityLogFilters filter={filter} onChange={(search) => void navigate({ to: '/settings/security-log', search })} />
      {error && <ProblemNote title={t.couldNotLoadTheSecurityLog} error={error} onRetry={() => void refetch()} />}
      {entries.length > 0 && (
        <ol className={styles.list} aria-label={t.entries}>
          {entries.map((entry) => (
            <SecurityLogEntry key={entry.id} entry={entry} names={names} />
          ))}
        </ol>
      )}
      {data && entries.length === 0 && <EmptyState title={t.noEntriesMatch} />}
      {!data && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {hasNextPage && (
        <div className={styles.more}>
          <Button isBusy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            {t.showOlderEntries}
          </Button>
        </div>
      )}
    </PageBody>
  )
}

function useNames(): AuditNames {
  const lists = [useQuery(agentsQuery).data, useQuery(roomsQuery).data, useQuery(tokensQuery).data]
  return new Map(lists.flatMap((list) => (list ?? []).map(({ id, name }) => [id, name] as const)))
}
