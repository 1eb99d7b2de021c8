import { useMutation, useQueryClient } from '@tanstack/react-query'
import { SlidersHorizontal, UserMinus, UserPlus, X } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { AgentDetail } from '@/components/ui/agent-detail'
import { AgentMark } from '@/components/ui/agent-mark'
import { IconButton } from '@/components/ui/button'
import { useRoom } from '@/feed/use-feed'
import { explain } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent, Room } from '@/lib/api/types'
import { setAgents } from '../api/room-commands'
import { doingOf, toggleMembers } from '../model/members'
import { flagWords, settingsIn } from '../model/member-flags'
import { useAgents } from '../model/use-agents'
import { MemberSettings } from './member-settings'
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
  const [open, setOpen] = useState<string | null>(null)
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
          <Member key={agent.id} roomId={room.id} agent={agent} flags={flagWords(settingsIn(room, agent.id))} below={open === agent.id && <MemberSettings room={room} agent={agent} />}>
            {present.length > 1 && (
              <IconButton label={t.settingsOf(agent.name)} aria-expanded={open === agent.id} onClick={() => setOpen(open === agent.id ? null : agent.id)}>
                <SlidersHorizontal size={15} aria-hidden />
              </IconButton>
            )}
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
      {present.length > 1 && <TapeSection room={room} members={present} />}
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

interface MemberProps {
  roomId: string
  agent: Agent
  /** What is special about it in this room. */
  flags?: readonly string[]
  below?: ReactNode
  children: ReactNode
}

function Member({ roomId, agent, flags = [], below, children }: MemberProps): ReactNode {
  const doing = useRoom(roomId, (view) => doingOf(view.state, agent.id))
  return (
    <li>
      <div className={styles.member}>
        <AgentMark id={agent.id} name={agent.name} />
        <span className={styles.who}>
          <span className={styles.name} dir="auto">{agent.name}</span>
          <span className={styles.detail} data-doing={doing ?? undefined}>
            {doing ?? <AgentDetail agent={agent} />}
          </span>
          {flags.length > 0 && <span className={styles.flags}>{flags.join(' · ')}</span>}
        </span>
        {children}
      </div>
      {below}
    </li>
  )
}
