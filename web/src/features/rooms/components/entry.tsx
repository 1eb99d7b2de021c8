import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { fullTime, position, timeOfDay } from '@/lib/format'
import styles from './entry.module.css'

interface EntryProps {
  roomId: string
  /** Its number in the journal; nothing while it has none. */
  seq: number | null
  kind: 'person' | 'answer' | 'aside'
  who: ReactNode
  time: string | null
  actions?: ReactNode
  isMarked?: boolean
  children: ReactNode
}

/** One entry of the conversation, with its seq in the margin. */
export function Entry({ roomId, seq, kind, who, time, actions, isMarked = false, children }: EntryProps): ReactNode {
  return (
    <article className={styles.entry} data-kind={kind} data-marked={isMarked || undefined} data-seq={seq ?? undefined}>
      <div className={styles.margin}>{seq !== null && <SeqLink roomId={roomId} seq={seq} />}</div>
      <div className={styles.body}>
        <header className={styles.head}>
          {who}
          {time !== null && (
            <time className={styles.time} dateTime={time} title={fullTime(time)}>
              {timeOfDay(time)}
            </time>
          )}
          {seq !== null && <SeqLink roomId={roomId} seq={seq} />}
          <div className={styles.actions}>{actions}</div>
        </header>
        {children}
      </div>
    </article>
  )
}

function SeqLink({ roomId, seq }: { roomId: string; seq: number }): ReactNode {
  return (
    <Link
      to="/rooms/$roomId"
      params={{ roomId }}
      search={{ m: seq }}
      className={styles.seq}
      title="Link to this message"
      aria-label={`Entry ${seq}, link to this message`}
    >
      {position(seq)}
    </Link>
  )
}
