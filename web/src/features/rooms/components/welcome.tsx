import type { ReactNode } from 'react'
import { useFeed } from '@/feed/use-feed'
import type { Room } from '@/lib/api/types'
import { useAgents } from '../model/use-agents'
import { RealAgents } from './real-agents'
import styles from './welcome.module.css'

const scriptedIdeas = [
  { title: 'Say hello', detail: 'It answers in one line, word by word', text: 'Hello!' },
  { title: 'Watch it stream', detail: 'Reload the page in the middle: nothing is lost', text: '!count 60 100' },
  { title: 'See it think', detail: 'See its reasoning, collapsed', text: '!think Why is the sky blue by day and dark by night' },
  { title: 'See it use a tool', detail: 'With its input, output and result', text: '!tool look {"at":"the clock"}' },
  { title: 'Approve a tool call', detail: 'Allow it, deny it, or edit it first', text: '!ask Bash {"cmd":"ls -l"}' },
  { title: 'Stop it', detail: 'It hangs until you press Stop', text: '!hang' },
]

const names = new Intl.ListFormat('en')

/** An empty room: suggestions to click. */
export function Welcome({ room }: { room: Room }): ReactNode {
  const feed = useFeed()
  const members = useAgents().filter((agent) => room.agents.includes(agent.id))
  const scripted = members.find((agent) => agent.provider === 'scripted')
  const say = (text: string): void => void feed.outbox(room.id).send({ text, mentions: [], whenBusy: null })

  return (
    <div className={styles.welcome}>
      <h2>{scripted ? 'Try Greenroom with the demo agent' : members.length > 0 ? `Message ${names.format(members.map((agent) => agent.name))}` : 'No agents in this room'}</h2>
      {scripted && <p>Greenroom runs AI agents in rooms. Every answer is stored as it is written: close the page, come back, and nothing is lost.</p>}
      {scripted ? (
        <>
          <p>This built-in agent plays back what you ask for, so you can see how Greenroom works. Try one:</p>
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
        <p>{members.length > 0 ? 'Type a message below.' : 'Add an agent: open Members at the top right.'}</p>
      )}
      <RealAgents />
    </div>
  )
}
