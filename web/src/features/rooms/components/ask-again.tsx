import { useQuery } from '@tanstack/react-query'
import { RotateCcw } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { Menu } from '@/components/ui/menu'
import { roomsQuery } from '@/lib/api/queries'
import { useAgents } from '../model/use-agents'
import { t } from '../texts'

/** Asks the same question once more; where several agents are in the room, any of them. */
export function AskAgain({ roomId, agentId, onAsk }: { roomId: string; agentId: string; onAsk: (agentId: string) => void }): ReactNode {
  const room = useQuery(roomsQuery).data?.find(({ id }) => id === roomId)
  const members = useAgents().filter(({ id }) => room?.agents.includes(id))
  const icon = <RotateCcw size={15} aria-hidden />
  if (members.length < 2) {
    return (
      <IconButton label={t.askAgain} onClick={() => onAsk(agentId)}>
        {icon}
      </IconButton>
    )
  }
  return <Menu label={t.askAgain} icon={icon} items={members.map(({ id, name }) => ({ label: t.askAgent(name), onSelect: () => onAsk(id) }))} />
}
