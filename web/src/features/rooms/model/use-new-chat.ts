import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { explain } from '@/lib/api/client'
import { notify } from '@/lib/notices'
import { newChat } from './new-chat'
import { t } from '../texts'

/** Opens a new chat with the agents that were talked to last. */
export function useNewChat(): () => void {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const { mutate, isPending } = useMutation({
    mutationFn: () => newChat(queries),
    onSuccess: (room) => navigate({ to: '/rooms/$roomId', params: { roomId: room.id } }),
    onError: (error) => notify(t.noChatWasCreated(explain(error)), 'problem'),
  })
  return () => {
    if (!isPending) mutate()
  }
}
