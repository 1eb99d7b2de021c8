import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { deleteAgent } from '../api/agent-commands'
import { agentQuery } from '../api/agent-queries'
import { t } from '../texts'

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
    <ConfirmDialog title={t.delete(agent.name)} keep={t.cancel} confirm={t.deleteAgent} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.itsSettingsAreGoneForGoodExport(rooms === 0 ? t.itIsntInAnyRoom : t.itLeavesItIsInWhatIt(rooms === 1 ? t.theRoom : t.theRooms(rooms)))}</p>
    </ConfirmDialog>
  )
}
