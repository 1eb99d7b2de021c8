import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { useFeed } from '@/feed/use-feed'
import { agentTemplates } from '@/lib/agent-templates'
import type { Room } from '@/lib/api/types'
import { RealAgents } from './real-agents'
import { t } from '../texts'
import styles from './welcome.module.css'

/** Sentences that the demo agent understands (`crates/providers/src/scripted/demo.rs`). */
function ideas(): { text: string; detail: string }[] {
  return [
    { text: t.countTo60, detail: t.reloadThePageInTheMiddleNothing },
    { text: t.thinkAboutTheSky, detail: t.seeItsReasoningCollapsed },
    { text: t.lookAtTheClock, detail: t.withItsInputOutputAndResult },
    { text: t.listTheFiles, detail: t.allowItDenyItOrEditIt },
    { text: t.askMeForAColor, detail: t.answerByChoosing },
    { text: t.workUntilIStopYou, detail: t.itHangsUntilYouPressStop },
  ]
}

/** What Greenroom is, and three ways to begin: connect an agent, try the demo agent, create one. */
export function FirstSteps({ room, isNewcomer }: { room: Room; isNewcomer: boolean }): ReactNode {
  const feed = useFeed()
  const say = (text: string): void => void feed.outbox(room.id).send({ text, mentions: [], whenBusy: null })
  return (
    <div className={styles.welcome}>
      {isNewcomer && (
        <>
          <h2>{t.greenroomRunsAgents}</h2>
          <p>{t.everyAnswerIsStored}</p>
          <section className={styles.step} aria-label={t.connectAnAgent}>
            <h2>{t.connectAnAgent}</h2>
            <RealAgents />
          </section>
        </>
      )}
      <section className={styles.step} aria-label={t.tryGreenroomWithTheDemoAgent}>
        <h2>{t.tryGreenroomWithTheDemoAgent}</h2>
        <p>{t.theDemoAgentNeedsNoKey}</p>
        <ul className={styles.ideas}>
          {ideas().map((idea) => (
            <li key={idea.text}>
              <button type="button" onClick={() => say(idea.text)}>
                <strong>{idea.text}</strong>
                <span>{idea.detail}</span>
              </button>
            </li>
          ))}
        </ul>
      </section>
      {isNewcomer && <OwnAgent />}
    </div>
  )
}

function OwnAgent(): ReactNode {
  return (
    <section className={styles.step} aria-label={t.createYourOwn}>
      <h2>{t.createYourOwn}</h2>
      <ul className={styles.ideas}>
        {agentTemplates().map(({ id, name, does }) => (
          <li key={id}>
            <Link to="/agents/new" search={{ template: id }}>
              <strong>{name}</strong>
              <span>{does}</span>
            </Link>
          </li>
        ))}
      </ul>
    </section>
  )
}
