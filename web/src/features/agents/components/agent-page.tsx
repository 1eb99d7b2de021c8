import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import { PageNote } from '@/components/layout/page-note'
import { Button } from '@/components/ui/button'
import loading from '@/components/ui/loading.module.css'
import { ApiError, explain } from '@/lib/api/client'
import { type TemplateId, agentTemplates } from '@/lib/agent-templates'
import { agentsQuery, providersQuery } from '@/lib/api/queries'
import { agentQuery } from '../api/agent-queries'
import { draftOf, emptyDraft, freeName } from '../model/draft'
import { instructionsOf } from '../model/instructions'
import { firstChoice, providerTitle } from '@/lib/providers'
import { AgentEditor } from './agent-editor'
import { t } from '../texts'

/** Shows a room inside of a page; the app brings it, because rooms are another feature. */
export type ShowRoom = (roomId: string) => ReactNode

export interface AgentView {
  /** The side room is open. */
  test?: true
  show?: 'effective' | 'memory'
}

export function AgentPage({ agentId, view, showRoom }: { agentId: string; view: AgentView; showRoom: ShowRoom }): ReactNode {
  const { data: agent, error, refetch } = useQuery(agentQuery(agentId))
  if (agent) return <AgentEditor key={agent.id} agent={agent} initial={draftOf(agent)} view={view} showRoom={showRoom} />
  if (error instanceof ApiError && error.status === 404) {
    return <Note title={t.agentNotFound} detail={t.itMayHaveBeenDeletedItsMessages} />
  }
  if (error) {
    return (
      <Note title={t.couldNotLoadTheAgent} detail={explain(error)}>
        <Button look="primary" onClick={() => void refetch()}>
          {t.tryAgain}
        </Button>
      </Note>
    )
  }
  return <Reading />
}

interface NewAgentPageProps {
  from: string | null
  provider: string | null
  template: TemplateId | null
  showRoom: ShowRoom
}

/** A new agent: from nothing, from a template, or as another one is. */
export function NewAgentPage({ from, provider, template, showRoom }: NewAgentPageProps): ReactNode {
  const agents = useQuery(agentsQuery)
  const providers = useQuery(providersQuery)
  const source = agents.data?.find((agent) => agent.id === from)
  if (!agents.data || (!source && providers.isPending)) return agents.error ? <Note title={t.couldNotLoadAgents} detail={explain(agents.error)} /> : <Reading />
  const chosen = provider ?? firstChoice(providers.data ?? [])
  const there = agents.data
  const suggest = (name: string): string => freeName(providerTitle(name), there)
  const chosenTemplate = agentTemplates().find(({ id }) => id === template)
  const initial = source
    ? { ...draftOf(source), name: freeName(t.copy(source.name.slice(0, 110)), there) }
    : chosenTemplate
      ? { ...emptyDraft(chosen, freeName(chosenTemplate.name, there)), systemPrompt: instructionsOf(chosenTemplate.id) }
      : emptyDraft(chosen, suggest(chosen))
  return <AgentEditor key={`${from} ${provider} ${template}`} agent={null} initial={initial} suggestName={source || chosenTemplate ? undefined : suggest} view={{}} showRoom={showRoom} />
}

function Reading(): ReactNode {
  return (
    <>
      <PageBar> </PageBar>
      <p className={loading.loading} role="status">
        {t.loading}
      </p>
    </>
  )
}

function Note({ title, detail, children }: { title: string; detail: string; children?: ReactNode }): ReactNode {
  return (
    <PageNote title={title} detail={detail}>
      <p>
        <Link to="/agents">{t.allAgents}</Link>
      </p>
      {children}
    </PageNote>
  )
}
