import { useQuery } from '@tanstack/react-query'
import { roomsQuery } from '@/lib/api/queries'
import { settingsIn } from './member-flags'

/** Whether only people read what an agent says in a room. */
export function useIsCritic(roomId: string, agentId: string): boolean {
  const room = useQuery(roomsQuery).data?.find(({ id }) => id === roomId)
  return room !== undefined && settingsIn(room, agentId).critic
}
