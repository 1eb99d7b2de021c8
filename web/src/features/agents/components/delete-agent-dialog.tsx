import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { explain } from '@/lib/api/client'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { deleteAgent } from '../api/agent-commands'
import { agentQuery } from '../api/agent-queries'
import styles from './agents.module.css'

export function DeleteAgentDialog({ agent, onClose }: { agent: Agent; onClose: () => void }): ReactNode {
  const [isBusy, setIsBusy] = useState(false)
  const [problem, setProblem] = useState<string | null>(null)
  const rooms = useQuery(roomsQuery).data?.filter((room) => room.agents.includes(agent.id)).length ?? 0
  const queries = useQueryClient()
  const navigate = useNavigate()

  const remove = async (): Promise<void> => {
    setIsBusy(true)
    try {
      await deleteAgent(agent.id)
      onClose()
      await navigate({ to: '/agents', ignoreBlocker: true })
      queries.removeQueries(agentQuery(agent.id))
      await Promise.all([queries.invalidateQueries(agentsQuery), queries.invalidateQueries(roomsQuery)])
    } catch (error) {
      setProblem(explain(error))
      setIsBusy(false)
    }
  }

  return (
    <Dialog title={`Delete ${agent.name}?`} onClose={onClose}>
      <div className={styles.dialog}>
        <p>
          {rooms === 0 ? 'It is in no room.' : `It leaves ${rooms === 1 ? 'the room' : `the ${rooms} rooms`} it is in; what it said stays.`} Its settings are
          gone for good: export it first if you may want them back.
        </p>
        {problem && (
          <p className={styles.problem} role="alert">
            {problem}
          </p>
        )}
        <div className={styles.dialogActions}>
          <Button onClick={onClose}>Keep it</Button>
          <Button look="danger" isBusy={isBusy} onClick={() => void remove()}>
            Delete the agent
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
