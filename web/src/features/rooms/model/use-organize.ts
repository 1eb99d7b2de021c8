import { useMutation, useQueryClient } from '@tanstack/react-query'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import { notify } from '@/lib/notices'
import { type RoomPlace, organizeRoom } from '../api/room-commands'

/** Pins, archives, and moves rooms of the list. */
export function useOrganize(): (id: string, place: RoomPlace) => void {
  const queries = useQueryClient()
  const { mutate } = useMutation({
    mutationFn: ({ id, place }: { id: string; place: RoomPlace }) => organizeRoom(id, place),
    onSuccess: () => queries.invalidateQueries(roomsQuery),
    onError: (error) => notify(explain(error), 'problem'),
  })
  return (id, place) => mutate({ id, place })
}
