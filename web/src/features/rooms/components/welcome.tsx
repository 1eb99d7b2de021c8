import type { ReactNode } from 'react'
import { useFeed } from '@/feed/use-feed'
import type { Room } from '@/lib/api/types'
import { useAgents } from '../model/use-agents'
import { RealAgents } from './real-agents'
import { locale } from '@/lib/i18n'
import { t } from '../texts'
import styles from './welcome.module.css'

const scriptedIdeas = [
  { get title() { return t.sayHello }, get detail() { return t.itAnswersInOneLineWordBy }, get text() { return t.hello } },
  { get title() { return t.watchItStream }, get detail() { return t.reloadThePageInTheMiddleNothing }, text: '!count 60 100' },
  { get title() { return t.seeItThink }, get detail() { return t.seeItsReasoningCollapsed }, text: '!think Why is the sky blue by day and dark by night' },
  { get title() { return t.seeItUseATool }, get detail() { return t.withItsInputOutputAndResult }, text: '!tool look {"at":"the clock"}' },
  { get title() { return t.approveAToolCall }, get detail() { return t.allowItDenyItOrEditIt }, text: '!ask Bash {"cmd":"ls -l"}' },
  { get title() { return t.stopIt }, get detail() { return t.itHangsUntilYouPressStop }, text: '!hang' },
]


/** An empty room: suggestions to click. */
export function Welcome({ room }: { room: Room }): ReactNode {
  const feed = useFeed()
  const members = useAgents().filter((agent) => room.agents.includes(agent.id))
  const scripted = members.find((agent) => agent.provider === 'scripted')
  const say = (text: string): void => void feed.outbox(room.id).send({ text, mentions: [], whenBusy: null })

  return (
    <div className={styles.welcome}>
      <h2>{scripted ? t.tryGreenroomWithTheDemoAgent : members.length > 0 ? t.messageWith2(new Intl.ListFormat(locale()).format(members.map((agent) => agent.name))) : t.noAgentsInThisRoom}</h2>
      {scripted && <p>{t.greenroomRunsAiAgentsInRoomsEvery}</p>}
      {scripted ? (
        <>
          <p>{t.thisBuiltInAgentPlaysBackWhat}</p>
          <ul className={styles.ideas}>
            {scriptedIdeas.map((idea) => (
              <li key={idea.title}>
                <button type="button" onClick={() => say(idea.text)}>
                  <strong>{idea.title}</strong>
                  <span>{idea.detail}</span>
                  <code>{idea.text}</code>
                </button>
              </li>
            ))}
          </ul>
        </>
      ) : (
        <p>{members.length > 0 ? t.typeAMessageBelow : t.addAnAgentOpenMembersAtThe}</p>
      )}
      <RealAgents />
    </div>
  )
}
