import { Link } from '@tanstack/react-router'
import { Link2 } from 'lucide-react'
import type { ReactNode } from 'react'
import iconLink from '@/components/ui/icon-link.module.css'
import { fullTime, position, timeOfDay } from '@/lib/format'
import { usePreference } from '@/lib/preferences'
import { t } from '../texts'
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

/** One entry of the conversation. Its seq is in the margin for those who want to see it. */
export function Entry({ roomId, seq, kind, who, time, actions, isMarked = false, children }: EntryProps): ReactNode {
  const showsSeq = usePreference('developer')
  return (
    <article className={styles.entry} data-kind={kind} data-marked={isMarked || undefined} data-seq={seq ?? undefined}>
      <div className={styles.margin}>{showsSeq && seq !== null && <span className={styles.seq}>{position(seq)}</span>}</div>
      <div className={styles.body}>
        <header className={styles.head}>
          {who}
          {time !== null && (
            <time className={styles.time} dateTime={time} title={fullTime(time)}>
              {timeOfDay(time)}
            </time>
          )}
          <div className={styles.actions}>
            {actions}
            {seq !== null && (
              <Link to="/rooms/$roomId" params={{ roomId }} search={{ m: seq }} className={iconLink.link} title={t.linkToThisMessage} aria-label={t.linkToThisMessage}>
                <Link2 size={15} aria-hidden />
              </Link>
            )}
          </div>
        </header>
        {children}
      </div>
    </article>
  )
}
