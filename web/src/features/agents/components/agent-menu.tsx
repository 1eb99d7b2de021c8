import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Copy, Ellipsis, FileJson, MessageSquare, Trash2 } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Menu } from '@/components/ui/menu'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import { download, fileName } from '@/lib/download'
import { notify } from '@/lib/notices'
import { createRoomWith } from '../api/agent-commands'
import { toFile } from '../model/transfer'
import { DeleteAgentDialog } from './delete-agent-dialog'
import { t } from '../texts'

/** Actions on an agent other than editing. */
export function AgentMenu({ agent }: { agent: Agent }): ReactNode {
  const [isDeleting, setIsDeleting] = useState(false)
  const navigate = useNavigate()
  const queries = useQueryClient()

  const openRoom = useMutation({
    mutationFn: () => createRoomWith(agent),
    onSuccess: async (room) => {
      await queries.invalidateQueries(roomsQuery)
      await navigate({ to: '/rooms/$roomId', params: { roomId: room.id } })
    },
    onError: (error) => notify(t.noRoomWasCreated(explain(error)), 'problem'),
  })

  return (
    <>
      <Menu
        label={t.actionsFor(agent.name)}
        icon={<Ellipsis size={18} aria-hidden />}
        items={[
          { label: t.openARoomWithIt, icon: <MessageSquare size={15} aria-hidden />, onSelect: () => openRoom.mutate() },
          { label: t.duplicate, icon: <Copy size={15} aria-hidden />, onSelect: () => void navigate({ to: '/agents/new', search: { from: agent.id } }) },
          {
            label: t.exportAsJson,
            icon: <FileJson size={15} aria-hidden />,
            onSelect: () => download(fileName(agent.name, 'agent.json'), 'application/json', toFile([agent])),
          },
          { label: t.deleteIt, icon: <Trash2 size={15} aria-hidden />, onSelect: () => setIsDeleting(true), isDangerous: true },
        ]}
      />
      {isDeleting && <DeleteAgentDialog agent={agent} onClose={() => setIsDeleting(false)} />}
    </>
  )
}
