import { getRouteApi } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { AgentPage, NewAgentPage } from '@/features/agents/components/agent-page'
import { SideConversation } from './side-conversation'

export { AgentsPage } from '@/features/agents/components/agents-page'

// The agents feature does not know rooms: the app combines them.
const showRoom = (roomId: string): ReactNode => <SideConversation key={roomId} roomId={roomId} />
const one = getRouteApi('/agents/$agentId')
const fresh = getRouteApi('/agents/new')

export function AgentRoute(): ReactNode {
  const { agentId } = one.useParams()
  return <AgentPage agentId={agentId} view={one.useSearch()} showRoom={showRoom} />
}

export function NewAgentRoute(): ReactNode {
  const { from, provider, template } = fresh.useSearch()
  return <NewAgentPage from={from ?? null} provider={provider ?? null} template={template ?? null} showRoom={showRoom} />
}
