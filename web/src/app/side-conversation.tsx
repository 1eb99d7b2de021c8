import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { useFeed, useRoom } from '@/feed/use-feed'
import { Composer } from '@/features/rooms/components/composer'
import { Conversation } from '@/features/rooms/components/conversation'
import { Welcome } from '@/features/rooms/components/welcome'
import { answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'

/** A room without its page: the conversation and the composer. */
export function SideConversation({ roomId }: { roomId: string }): ReactNode {
  const feed = useFeed()
  const phase = useRoom(roomId, (view) => view.phase)
  const room = useQuery({
    queryKey: queryKeys.rooms.one(roomId),
    queryFn: () => answerOf(api.GET('/api/rooms/{id}', { params: { path: { id: roomId } } })),
  }).data

  useEffect(() => {
    feed.room(roomId).open()
  }, [feed, roomId])

  if (!room) return null
  return (
    <>
      {phase === 'live' && <Conversation roomId={roomId} target={null} empty={<Welcome room={room} />} />}
      <Composer room={room} isLive={phase === 'live'} />
    </>
  )
}
