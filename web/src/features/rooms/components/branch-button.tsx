import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Split } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import { notify } from '@/lib/notices'
import { branchRoom } from '../api/room-commands'
import { t } from '../texts'

/** Goes on from a message in a new room; this one stays as it is. */
export function BranchButton({ roomId, messageId }: { roomId: string; messageId: string }): ReactNode {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const branch = useMutation({
    mutationFn: () => {
      const name = queries.getQueryData(roomsQuery.queryKey)?.find((room) => room.id === roomId)?.name
      return branchRoom(roomId, messageId, name && t.branchName(name.slice(0, 100)))
    },
    onSuccess: async (room) => {
      await queries.invalidateQueries(roomsQuery)
      await navigate({ to: '/rooms/$roomId', params: { roomId: room.id } })
    },
    onError: (error) => notify(t.noBranchWasCreated(explain(error)), 'problem'),
  })
  return (
    <IconButton label={t.branchFromHere} aria-busy={branch.isPending} disabled={branch.isPending} onClick={() => branch.mutate()}>
      <Split size={15} aria-hidden />
    </IconButton>
  )
}
