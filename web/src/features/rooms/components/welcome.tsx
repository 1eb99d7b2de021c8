import type { ReactNode } from 'react'
import { later } from '@/components/ui/later'
import type { Room } from '@/lib/api/types'
import { locale } from '@/lib/i18n'
import { useAgents } from '../model/use-agents'
import { t } from '../texts'
import styles from './welcome.module.css'

const FirstSteps = later(async () => (await import('./first-steps')).FirstSteps)

/** An empty room. With the demo agent in it, it is the first thing that a newcomer sees. */
export function Welcome({ room }: { room: Room }): ReactNode {
  const agents = useAgents()
  const members = agents.filter((agent) => room.agents.includes(agent.id))
  // Who has an agent of their own has begun already.
  if (members.some((agent) => agent.provider === 'scripted')) return <FirstSteps room={room} isNewcomer={agents.length === 1} />
  return (
    <div className={styles.welcome}>
      <h2>{members.length > 0 ? t.messageWith2(new Intl.ListFormat(locale()).format(members.map((agent) => agent.name))) : t.noAgentsInThisRoom}</h2>
      <p>{members.length > 0 ? t.typeAMessageBelow : t.addAnAgentOpenMembersAtThe}</p>
    </div>
  )
}
