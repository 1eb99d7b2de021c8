import type { ReactNode } from 'react'
import { useFeed } from '@/feed/use-feed'
import type { Room } from '@/lib/api/types'
import { useAgents } from '../model/use-agents'
import { RealAgents } from './real-agents'
import styles from './welcome.module.css'

const scriptedIdeas = [
  { title: 'Say hello', detail: 'It answers in one line, word by word', text: 'Hello!' },
  { title: 'Watch it stream', detail: 'Reload the page in the middle: nothing is lost', text: '!count 60 100' },
  { title: 'See it think', detail: 'Thinking is kept, and folded away', text: '!think Why is the sky blue by day and dark by night' },
  { title: 'Let it use a tool', detail: 'With its input, output and result', text: '!tool look {"at":"the clock"}' },
  { title: 'Be asked for permission', detail: 'Allow it, deny it, or change it first', text: '!ask Bash {"cmd":"ls -l"}' },
  { title: 'Stop it', detail: 'It hangs until you press Stop', text: '!hang' },
]

/** An empty room: suggestions to click. */
export function Welcome({ room }: { room: Room }): ReactNode {
  const feed = useFeed()
  const members = useAgents().filter((agent) => room.agents.includes(agent.id))
  const scripted = members.find((agent) => agent.provider === 'scripted')
  const say = (text: string): void => void feed.outbox(room.id).send({ text, mentions: [], whenBusy: null })

  return (
    <div className={styles.welcome}>
      <h2>{scripted ? `${scripted.name} is here and needs no key` : `${members.map((agent) => agent.name).join(', ') || 'Nobody'} is here`}</h2>
      {scripted ? (
        <>
          <p>It does what a message tells it to, which makes it good for trying things out. Type below, or begin with one of these:</p>
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
        <p>{members.length > 0 ? 'Say something below.' : 'Add an agent in the room settings, in the menu at the top right.'}</p>
      )}
      <RealAgents />
    </div>
  )
}
