import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import type { Round } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import styles from './training.module.css'

const first = 20

export function RoundList({ rounds }: { rounds: readonly Round[] }): ReactNode {
  const [isWhole, setIsWhole] = useState(false)
  if (rounds.length === 0) return null
  return (
    <Section title="History">
      <ol className={styles.rounds} aria-label="Training history, newest first">
        {(isWhole ? rounds : rounds.slice(0, first)).map((round) => (
          <Item key={round.id} round={round} />
        ))}
      </ol>
      {!isWhole && rounds.length > first && <Button onClick={() => setIsWhole(true)}>Show all {rounds.length} entries</Button>}
    </Section>
  )
}

function Item({ round }: { round: Round }): ReactNode {
  const { kind, score, comment, issues, improvements, version, room_id: room, created_at: at, experience } = round
  const what = { rating: `Rated ${score} of 5`, accepted: 'A proposal was accepted', dropped: 'A proposal was dropped' }[kind]
  return (
    <li>
      <p className={styles.roundHead}>
        <strong>{what}</strong>
        <span className={styles.meta}>
          version {version}
          {typeof experience === 'number' && `, experience ${experience}`},{' '}
          <time dateTime={at} title={fullTime(at)}>
            {shortTime(at)}
          </time>
        </span>
        {room && (
          <Link to="/rooms/$roomId" params={{ roomId: room }} className={styles.meta}>
            room
          </Link>
        )}
      </p>
      {comment && <p>{comment}</p>}
      <Remarks title="Wrong" texts={issues} />
      <Remarks title="Better" texts={improvements} />
    </li>
  )
}

function Remarks({ title, texts }: { title: string; texts: readonly string[] }): ReactNode {
  if (texts.length === 0) return null
  return (
    <p>
      <span className={styles.meta}>{title}: </span>
      {texts.join('; ')}
    </p>
  )
}
