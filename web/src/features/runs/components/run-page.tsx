import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { ApiError } from '@/lib/api/client'
import { agentsQuery } from '@/lib/api/queries'
import type { Run } from '@/lib/api/types'
import { useNow } from '@/lib/use-now'
import { runQuery, timelineQuery } from '../api/runs'
import { isEnded } from '../model/run-filter'
import { RunEnd } from './run-end'
import { RunFacts } from './run-facts'
import { RunQuestion } from './run-question'
import { StopRun } from './stop-run'
import { Timeline } from './timeline'
import { t } from '../texts'

export function RunPage({ runId }: { runId: string }): ReactNode {
  const { data: run, error, refetch } = useQuery(runQuery(runId))
  const agents = useQuery(agentsQuery)
  const agent = agents.data?.find(({ id }) => id === run?.agent_id)?.name ?? (agents.data && run ? t.deletedAgent : null)
  const title = agent === null ? t.run : t.runOf(agent)
  return (
    <PageBody title={title} back={<Link to="/runs">{t.runs}</Link>} actions={run && !isEnded(run.status) && <StopRun runId={runId} />}>
      {run && (
        <>
          <RunQuestion run={run} />
          <RunEnd run={run} />
          <RunFacts run={run} agent={agent ?? ''} />
          <RunTimeline run={run} />
        </>
      )}
      {!run && !error && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {error && !run && isMissing(error) && (
        <EmptyState title={t.runNotFound} detail={t.itsRoomMayHaveBeenDeleted}>
          <Link to="/runs">{t.showAllRuns}</Link>
        </EmptyState>
      )}
      {error && !isMissing(error) && <ProblemNote title={t.couldNotLoadTheRun} error={error} onRetry={() => void refetch()} />}
    </PageBody>
  )
}

function RunTimeline({ run }: { run: Run }): ReactNode {
  const { data, error, refetch } = useQuery(timelineQuery(run.id))
  const now = useNow(!isEnded(run.status)) - new Date(run.created_at).getTime()
  if (error && !data) return <ProblemNote title={t.couldNotLoadTheTimeline} error={error} onRetry={() => void refetch()} />
  if (!data) return null
  return <Timeline spans={data.spans} now={now} />
}

function isMissing(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 400)
}
