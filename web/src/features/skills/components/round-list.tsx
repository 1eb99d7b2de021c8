import { Link } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Section } from '@/components/ui/section'
import type { Round } from '@/lib/api/types'
import { fullTime, shortTime } from '@/lib/format'
import { t } from '../texts'
import styles from './training.module.css'

const first = 20

export function RoundList({ rounds }: { rounds: readonly Round[] }): ReactNode {
  const [isWhole, setIsWhole] = useState(false)
  if (rounds.length === 0) return null
  return (
    <Section title={t.history}>
      <ol className={styles.rounds} aria-label={t.trainingHistoryNewestFirst}>
        {(isWhole ? rounds : rounds.slice(0, first)).map((round) => (
          <Item key={round.id} round={round} />
        ))}
      </ol>
      {!isWhole && rounds.length > first && <Button onClick={() => setIsWhole(true)}>{t.showAllEntries(rounds.length)}</Button>}
    </Section>
  )
}

function Item({ round }: { round: Round }): ReactNode {
  const { kind, score, comment, issues, improvements, version, room_id: room, created_at: at, experience } = round
  const what = { rating: t.ratedOf5(score), accepted: t.aProposalWasAccepted, dropped: t.aProposalWasDropped }[kind]
  return (
    <li>
      <p className={styles.roundHead}>
        <strong>{what}</strong>
        <span className={styles.meta}>
          {t.versionWord} {version}
          {typeof experience === 'number' && t.experienceWith(experience)},{' '}
          <time dateTime={at} title={fullTime(at)}>
            {shortTime(at)}
          </time>
        </span>
        {room && (
          <Link to="/rooms/$roomId" params={{ roomId: room }} className={styles.meta}>
            {t.room}
          </Link>
        )}
      </p>
      {comment && <p>{comment}</p>}
      <Remarks title={t.wrong} texts={issues} />
      <Remarks title={t.better} texts={improvements} />
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
