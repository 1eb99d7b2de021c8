import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Plus, Upload } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import { PageColumn } from '@/components/layout/page-column'
import { Button } from '@/components/ui/button'
import primaryLink from '@/components/ui/primary-link.module.css'
import { explain } from '@/lib/api/client'
import { agentsQuery, providersQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { useCommands } from '@/lib/commands'
import { download } from '@/lib/download'
import { setPageTitle } from '@/lib/page-title'
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

  useEffect(() => {
    setPageTitle(t.agents)
  }, [])

  useCommands([
    { id: 'import-agents', title: t.importAgentsFromAFile, group: 'agents', run: () => setIsImporting(true) },
    { id: 'export-agents', title: t.exportAllAgents, group: 'agents', run: exportAll },
  ])

  return (
    <>
      <PageBar
        actions={
          <Link to="/agents/new" className={primaryLink.link}>
            <Plus size={15} aria-hidden />
            {t.newAgent}
          </Link>
        }
      >
        <h1 className={styles.title}>{t.agents}</h1>
      </PageBar>
      <PageColumn className={styles.page}>
        <div className={styles.bar}>
          {(agents?.length ?? 0) >= worthFiltering ? (
            <input type="search" className={styles.filter} aria-label={t.filterAgents} placeholder={t.nameProviderOrModel} value={filter} onChange={(event) => setFilter(event.target.value)} />
          ) : (
            <p className={styles.period}>{t.agentsThatAnswerInYourRooms}</p>
          )}
          <Button look="quiet" onClick={() => setIsImporting(true)}>
            <Upload size={15} aria-hidden />
            {t.import}
          </Button>
        </div>
        {error && !agents && (
          <div className={styles.note} role="alert">
            <h2>{t.couldNotLoadAgents}</h2>
            <p>{explain(error)}</p>
            <Button look="primary" onClick={() => void refetch()}>
              {t.tryAgain}
            </Button>
          </div>
        )}
        {!error && !agents && (
          <p className={styles.reading} role="status">
            {t.reading}
          </p>
        )}
        {agents && <Cards agents={agents.filter((agent) => fits(agent, filter))} isFiltered={filter.trim() !== ''} />}
      </PageColumn>
      {isImporting && <ImportDialog onClose={() => setIsImporting(false)} />}
    </>
  )
}

function Cards({ agents, isFiltered }: { agents: readonly Agent[]; isFiltered: boolean }): ReactNode {
  const usage = useQuery(usageByAgentQuery).data ?? null
  const runs = useQuery(recentRunsQuery).data
  const providers = useQuery(providersQuery).data
  if (agents.length === 0) {
    return (
      <div className={styles.note}>
        <h2>{isFiltered ? t.noAgentsMatch : t.noAgentsYet}</h2>
        <p>{isFiltered ? t.searchByNameProviderOrModel : t.anAgentIsAModelOrA}</p>
        {!isFiltered && (
          <Link to="/agents/new" className={primaryLink.link}>
            {t.createAnAgent}
          </Link>
        )}
      </div>
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
