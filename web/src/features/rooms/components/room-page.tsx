import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useEffect } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import { PageNote } from '@/components/layout/page-note'
import { Button } from '@/components/ui/button'
import { later } from '@/components/ui/later'
import { useFeed, useRoom } from '@/feed/use-feed'
import { answerOf, api } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import type { Room } from '@/lib/api/types'
import { setPageTitle } from '@/lib/page-title'
import { remember } from '@/lib/storage'
import { useStore } from '@/lib/store'
import { membersStore } from '../model/members'
import { Composer } from './composer'
import { Conversation } from './conversation'
import { WeakSandboxNote } from './room-project'
import { RoomHeader } from './room-header'
import styles from './room-page.module.css'
import { Welcome } from './welcome'
import { t } from '../texts'

const MembersPanel = later(async () => (await import('./members-panel')).MembersPanel)

export function RoomPage({ roomId, target }: { roomId: string; target: number | null }): ReactNode {
  const feed = useFeed()
  const room = useRoomRecord(roomId)
  const phase = useRoom(roomId, (view) => view.phase)
  const problem = useRoom(roomId, (view) => view.problem)
  const isShowingMembers = useStore(membersStore)

  useEffect(() => {
    feed.room(roomId).open()
    remember('last-room', roomId)
  }, [feed, roomId])

  useEffect(() => {
    setPageTitle(room?.name ?? null)
  }, [room])

  if (phase === 'gone') return <PageNote title={t.roomNotFound} detail={t.itMayHaveBeenDeleted} />
  if (phase === 'failed') {
    return (
      <PageNote title={t.couldNotLoadTheRoom} detail={problem ?? ''}>
        <Button look="primary" onClick={() => void feed.room(roomId).load()}>
          {t.tryAgain}
        </Button>
      </PageNote>
    )
  }
  return (
    <>
      {room ? <RoomHeader room={room} /> : <PageBar> </PageBar>}
      {room?.project_id && <WeakSandboxNote projectId={room.project_id} />}
      <div className={styles.room}>
        <div className={styles.talk}>
          {phase === 'live' && room ? (
            <Conversation key={roomId} roomId={roomId} target={target} empty={<Welcome room={room} />} />
          ) : (
            <p className={styles.loading} role="status">
              {t.loading}
            </p>
          )}
          {room && <Composer key={`composer ${roomId}`} room={room} isLive={phase === 'live'} />}
        </div>
        {room && isShowingMembers && <MembersPanel key={`members ${roomId}`} room={room} />}
      </div>
    </>
  )
}

/** From the list if it is loaded, else with its own request: the list may be incomplete, or the link old. */
function useRoomRecord(roomId: string): Room | undefined {
  const listed = useQuery(roomsQuery).data?.find((room) => room.id === roomId)
  const single = useQuery({
    queryKey: queryKeys.rooms.one(roomId),
    queryFn: () => answerOf(api.GET('/api/rooms/{id}', { params: { path: { id: roomId } } })),
    enabled: !listed,
  })
  return listed ?? single.data
}
