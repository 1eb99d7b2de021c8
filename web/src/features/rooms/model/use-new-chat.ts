import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { explain } from '@/lib/api/client'
import { notify } from '@/lib/notices'
import { newChat } from './new-chat'
import { t } from '../texts'

/** Opens a new chat with the agents that were talked to last, in a project if one is given. */
export function useNewChat(): (projectId?: string) => void {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate, isPending } = useMutation({
    mutationFn: (projectId: string | undefined) => newChat(queries, projectId),
    onSuccess: (room) => navigate({ to: '/rooms/$roomId', params: { roomId: room.id } }),
    onError: (error) => notify(t.noChatWasCreated(explain(error)), 'problem'),
  })
  return (projectId) => {
    if (!isPending) mutate(projectId)
  }
}
