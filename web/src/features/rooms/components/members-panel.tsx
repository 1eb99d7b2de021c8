import { useMutation, useQueryClient } from '@tanstack/react-query'
import { UserMinus, UserPlus, X } from 'lucide-react'
import type { ReactNode } from 'react'
import { AgentDetail } from '@/components/ui/agent-detail'
import { AgentMark } from '@/components/ui/agent-mark'
import { IconButton } from '@/components/ui/button'
import { useRoom } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent, Room } from '@/lib/api/types'
import { setAgents } from '../api/room-commands'
import { doingOf, toggleMembers } from '../model/members'
import { useAgents } from '../model/use-agents'
import { TapeSection } from './tape-section'
import { TurnOrder } from './turn-order'
import { t } from '../texts'
import styles from './members-panel.module.css'

/** Who is in the room, who could be, and what each of them does. */
export function MembersPanel({ room }: { room: Room }): ReactNode {
  const queries = useQueryClient()
  const agents = useAgents()
  const present = room.agents.flatMap((id) => agents.find((agent) => agent.id === id) ?? [])
  const others = agents.filter((agent) => !room.agents.includes(agent.id))
  const change = useMutation({
    mutationFn: ({ members }: { agent: string; members: string[] }) => setAgents(room.id, members),
    onSuccess: () => queries.invalidateQueries(roomsQuery),
  })
  const isMoving = (id: string): boolean => change.isPending && change.variables.agent === id

  return (
    <aside className={styles.panel} aria-label={t.members}>
      <header className={styles.head}>
        <h2>{t.members}</h2>
        <IconButton label={t.closeMembers} onClick={toggleMembers}>
          <X size={17} aria-hidden />
        </IconButton>
      </header>
      {present.length > 0 && <p className={styles.note}>{present.length > 1 ? t.agentsAnswerInThisOrderMentionOne : t.thisAgentAnswersEachMessage}</p>}
      {present.length > 1 && <TurnOrder room={room} members={present} />}
      <ul className={styles.list}>
        {present.map((agent) => (
          <Member key={agent.id} roomId={room.id} agent={agent}>
            <IconButton
              label={t.remove(agent.name)}
              disabled={change.isPending}
              aria-busy={isMoving(agent.id)}
              onClick={() => change.mutate({ agent: agent.id, members: room.agents.filter((id) => id !== agent.id) })}
            >
              <UserMinus size={16} aria-hidden />
            </IconButton>
          </Member>
        ))}
      </ul>
      {present.length === 0 && <p className={styles.note}>{t.noAgentsYetAddOne}</p>}
      {change.error && (
        <p className={styles.problem} role="alert">
          {explain(change.error)}
        </p>
      )}
      {present.length > 1 && <TapeSection room={room} />}
      {others.length > 0 && (
        <>
          <h3 className={styles.others}>{t.addAgents}</h3>
          <ul className={styles.list}>
            {others.map((agent) => (
              <Member key={agent.id} roomId={room.id} agent={agent}>
                <IconButton
                  label={t.add(agent.name)}
                  disabled={change.isPending}
                  aria-busy={isMoving(agent.id)}
                  onClick={() => change.mutate({ agent: agent.id, members: [...room.agents, agent.id] })}
                >
                  <UserPlus size={16} aria-hidden />
                </IconButton>
              </Member>
            ))}
          </ul>
        </>
      )}
    </aside>
  )
}

function Member({ roomId, agent, children }: { roomId: string; agent: Agent; children: ReactNode }): ReactNode {
  const doing = useRoom(roomId, (view) => doingOf(view.state, agent.id))
  return (
    <li className={styles.member}>
      <AgentMark id={agent.id} name={agent.name} />
      <span className={styles.who}>
        <span className={styles.name}>{agent.name}</span>
        <span className={styles.detail} data-doing={doing ?? undefined}>
          {doing ?? <AgentDetail agent={agent} />}
        </span>
      </span>
      {children}
    </li>
  )
}
