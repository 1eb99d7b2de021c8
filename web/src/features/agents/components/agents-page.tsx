import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus, Upload } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { PageBody } from '@/components/layout/page-body'
import { Button } from '@/components/ui/button'
import { EmptyState } from '@/components/ui/empty-state'
import loading from '@/components/ui/loading.module.css'
import primaryLink from '@/components/ui/primary-link.module.css'
import { ProblemNote } from '@/components/ui/problem-note'
import { agentsQuery, providersQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { download } from '@/lib/download'
import { recentRunsQuery, usageByAgentQuery, usagePeriod } from '../api/agent-queries'
import { figuresOf } from '../model/figures'
import { providerTitle } from '@/lib/providers'
import { toFile } from '../model/transfer'
import { AgentCard } from './agent-card'
import styles from './agents.module.css'
import { ImportDialog } from './import-dialog'
import { t } from '../texts'

/** Fewer than this are found at a glance. */
const worthFiltering = 7

export function AgentsPage(): ReactNode {
  const { data: agents, error, refetch } = useQuery(agentsQuery)
  const [isImporting, setIsImporting] = useState(false)
  const [filter, setFilter] = useState('')
  const exportAll = (): void => download('greenroom-agents.json', 'application/json', toFile(agents ?? []))

  useCommands([
    { id: 'import-agents', title: t.importAgentsFromAFile, group: 'agents', run: () => setIsImporting(true) },
    { id: 'export-agents', title: t.exportAllAgents, group: 'agents', run: exportAll },
  ])

  return (
    <PageBody
      title={t.agents}
      actions={
        <>
          <Button look="quiet" title={t.import} onClick={() => setIsImporting(true)}>
            <Upload size={15} aria-hidden />
            <span className="visually-hidden-narrow">{t.import}</span>
          </Button>
          <Link to="/agents/new" className={primaryLink.link}>
            <Plus size={15} aria-hidden />
            {t.newAgent}
          </Link>
        </>
      }
    >
      {(agents?.length ?? 0) >= worthFiltering ? (
        <input type="search" className={styles.filter} aria-label={t.filterAgents} placeholder={t.nameProviderOrModel} value={filter} onChange={(event) => setFilter(event.target.value)} />
      ) : (
        <p className={styles.period}>{t.agentsThatAnswerInYourRooms}</p>
      )}
      {error && !agents && <ProblemNote title={t.couldNotLoadAgents} error={error} onRetry={() => void refetch()} />}
      {!error && !agents && (
        <p className={loading.loading} role="status">
          {t.loading}
        </p>
      )}
      {agents && <Cards agents={agents.filter((agent) => fits(agent, filter))} isFiltered={filter.trim() !== ''} />}
      {isImporting && <ImportDialog onClose={() => setIsImporting(false)} />}
    </PageBody>
  )
}

function Cards({ agents, isFiltered }: { agents: readonly Agent[]; isFiltered: boolean }): ReactNode {
  const usage = useQuery(usageByAgentQuery).data ?? null
  const runs = useQuery(recentRunsQuery).data
  const providers = useQuery(providersQuery).data
  if (agents.length === 0) {
    return (
      <EmptyState title={isFiltered ? t.noAgentsMatch : t.noAgentsYet} detail={isFiltered ? t.searchByNameProviderOrModel : t.anAgentIsAModelOrA}>
        {!isFiltered && (
          <Link to="/agents/new" className={primaryLink.link}>
            {t.createAnAgent}
          </Link>
        )}
      </EmptyState>
    )
  }
  return (
    <>
      <ul className={styles.cards}>
        {agents.toSorted((a, b) => a.name.localeCompare(b.name)).map((agent) => (
          <AgentCard
            key={agent.id}
            agent={agent}
            provider={providers?.find(({ name }) => name === agent.provider)}
            figures={runs ? figuresOf(agent.id, usage, runs) : null}
          />
        ))}
      </ul>
      {usage && <p className={styles.period}>{usagePeriod()}</p>}
    </>
  )
}

function fits({ name, provider, model }: Agent, filter: string): boolean {
  const all = `${name} ${provider} ${providerTitle(provider)} ${model ?? ''}`.toLowerCase()
  return filter.toLowerCase().split(/\s+/).every((word) => all.includes(word))
}
