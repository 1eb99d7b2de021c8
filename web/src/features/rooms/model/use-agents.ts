import { useQuery } from '@tanstack/react-query'
import { useRoom } from '@/feed/use-feed'
import { agentsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { t } from '../texts'

export function useAgents(): readonly Agent[] {
  return useQuery(agentsQuery).data ?? []
}

/** An agent's name as it is now; one that was deleted keeps the name it had in the room. */
export function useAgentName(roomId: string, agentId: string | null): string {
  const current = useAgents().find((agent) => agent.id === agentId)?.name
  const former = useRoom(roomId, (view) => (agentId === null ? undefined : view.state?.names.get(agentId)))
  return current ?? former ?? t.agentWord
}
