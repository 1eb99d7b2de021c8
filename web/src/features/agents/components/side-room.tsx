import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Maximize2, RotateCcw, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { Button, IconButton } from '@/components/ui/button'
import iconLink from '@/components/ui/icon-link.module.css'
import { answerOf, api, explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import { queryKeys } from '@/lib/api/query-keys'
import type { Agent } from '@/lib/api/types'
import { remember, remembered } from '@/lib/storage'
import { createTestRoom, testRoomName } from '../api/agent-commands'
import type { ShowRoom } from './agent-page'
import { t } from '../texts'
import styles from './side-room.module.css'

interface SideRoomProps {
  agent: Agent
  isChanged: boolean
  showRoom: ShowRoom
  onClose: () => void
}

/** A room next to the form, to try the saved agent. It is a normal room and stays in the list. */
export function SideRoom({ agent, isChanged, showRoom, onClose }: SideRoomProps): ReactNode {
  const { data: roomId, error, isFetching, refetch } = useQuery(testRoomQuery(agent))
  const queries = useQueryClient()

  const beginAnew = async (): Promise<void> => {
    // Not `null`: that would find the old one again.
    remember(`test-room.${agent.id}`, false)
    await refetch()
    await queries.invalidateQueries(roomsQuery)
  }

  return (
    <section className={styles.side} aria-label={t.testOf(agent.name)}>
      <header className={styles.head}>
        <h2>{t.test}</h2>
        <p className={styles.said}>{isChanged ? t.unsavedChangesAreNotIncluded : t.messagesGoToTheSavedAgent}</p>
        <IconButton label={t.startANewTestRoom} disabled={isFetching} onClick={() => void beginAnew()}>
          <RotateCcw size={15} aria-hidden />
        </IconButton>
        {roomId && (
          <Link to="/rooms/$roomId" params={{ roomId }} className={iconLink.link} aria-label={t.openAsARoom} title={t.openAsARoom}>
            <Maximize2 size={15} aria-hidden />
          </Link>
        )}
        <IconButton label={t.closeTest} onClick={onClose}>
          <X size={17} aria-hidden />
        </IconButton>
      </header>
      {roomId && showRoom(roomId)}
      {!roomId && error && (
        <div className={styles.problem} role="alert">
          <p>{t.couldNotCreateATestRoom(explain(error))}</p>
          <Button size="small" onClick={() => void refetch()}>
            {t.tryAgain}
          </Button>
        </div>
      )}
      {!roomId && !error && (
        <p className={styles.problem} role="status">
          {t.creatingATestRoom}
        </p>
      )}
    </section>
  )
}

/** The one it was tested in before, or a new one. */
function testRoomQuery(agent: Agent) {
  return queryOptions({
    queryKey: queryKeys.agents.testRoom(agent.id),
    staleTime: Infinity,
    queryFn: async ({ client }): Promise<string> => {
      const kept = remembered<string | false | null>(`test-room.${agent.id}`, null)
      const isFresh = kept === false
      const known = kept === false ? null : kept
      const room = known === null ? null : await answerOf(api.GET('/api/rooms/{id}', { params: { path: { id: known } } })).catch(() => null)
      if (room?.agents.includes(agent.id)) return room.id
      // Another browser may have created one: a link that opens the test must not create a room each time.
      const rooms = isFresh ? [] : await client.fetchQuery(roomsQuery)
      const made = rooms.find(({ name, agents }) => name === testRoomName(agent) && agents.length === 1 && agents[0] === agent.id) ?? (await createTestRoom(agent))
      remember(`test-room.${agent.id}`, made.id)
      void client.invalidateQueries(roomsQuery)
      return made.id
    },
  })
}
