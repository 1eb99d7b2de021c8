import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { deleteAgent } from '../api/agent-commands'
import { agentQuery } from '../api/agent-queries'

export function DeleteAgentDialog({ agent, onClose }: { agent: Agent; onClose: () => void }): ReactNode {
  const rooms = useQuery(roomsQuery).data?.filter((room) => room.agents.includes(agent.id)).length ?? 0
  const queries = useQueryClient()
  const navigate = useNavigate()

  const remove = useMutation({
    mutationFn: () => deleteAgent(agent.id),
    onSuccess: async () => {
      onClose()
      await navigate({ to: '/agents', ignoreBlocker: true })
      queries.removeQueries(agentQuery(agent.id))
      await Promise.all([queries.invalidateQueries(agentsQuery), queries.invalidateQueries(roomsQuery)])
    },
  })

  return (
    <ConfirmDialog title={`Delete ${agent.name}?`} keep="Cancel" confirm="Delete agent" isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>
        {rooms === 0 ? 'It isn’t in any room.' : `It leaves ${rooms === 1 ? 'the room' : `the ${rooms} rooms`} it is in; what it said stays.`} Its settings are
        gone for good: export it first if you may want them back.
      </p>
    </ConfirmDialog>
  )
}
