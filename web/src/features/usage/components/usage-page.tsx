import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { FileDown } from 'lucide-react'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { billingQuery } from '@/lib/api/queries'
import { download } from '@/lib/download'
import { useNow } from '@/lib/use-now'
import { usageQuery } from '../api/usage'
import { limitLines } from '../model/budget-list'
import { drawUsage } from '../model/chart'
import { toCsv } from '../model/csv'
import { type UsageFilter, boundsOf } from '../model/usage-filter'
import { BudgetsSection } from './budgets-section'
import { UsageChart } from './usage-chart'
import { UsageControls } from './usage-controls'
import styles from './usage-page.module.css'
import { UsageTable } from './usage-table'
import { UsageTotals } from './usage-totals'
import { RichText } from '@/components/ui/rich-text'
import { t } from '../texts'

/** What agents used and cost, over time. The address holds what one is looking at. */
export function UsagePage({ filter }: { filter: UsageFilter }): ReactNode {
  const navigate = useNavigate()
  const by = filter.by ?? 'agent'
  const measure = filter.show ?? 'cost'
  const now = useNow(true, 60_000)
  const bounds = boundsOf(filter, now)
  const { data: report, error, isPlaceholderData, refetch } = useQuery(usageQuery(bounds, by))
  const budgets = useQuery(billingQuery).data?.budgets ?? []
  const chart = report && drawUsage(report, measure, limitLines(budgets, new Date(now)))
  const save = (): void => {
    if (report) download(`usage-by-${by}-${report.from.slice(0, 10)}-to-${report.to.slice(0, 10)}.csv`, 'text/csv', toCsv(report, by))
  }
  return (
    <PageBody
      title={t.usage}
      actions={
        <Button size="small" disabled={!report || report.series.length === 0} onClick={save}>
          <FileDown size={14} aria-hidden />
          {t.exportCsv}
        </Button>
      }
    >
      <UsageControls filter={filter} onChange={(search) => void navigate({ to: '/usage', search })} />
      {error && <ProblemNote title={t.couldNotLoadUsage} error={error} onRetry={() => void refetch()} />}
      {report && chart && (
        <div className={styles.report} aria-busy={isPlaceholderData}>
          <UsageTotals total={report.total} />
          {report.series.length === 0 ? (
            <EmptyState title={t.noUsage} detail={<RichText text={t.sendOrChoose} parts={{ send: <Link to="/">{t.sendAMessageInARoom}</Link> }} />} />
          ) : (
            <div className={styles.sides}>
              <UsageChart chart={chart} bucket={report.bucket} measure={measure} />
              <UsageTable report={report} hues={chart.hues} by={by} measure={measure} />
            </div>
          )}
        </div>
      )}
      {!report && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      <BudgetsSection />
    </PageBody>
  )
}
