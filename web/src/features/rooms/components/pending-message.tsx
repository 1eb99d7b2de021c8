import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import type { Pending } from '@/feed/state'
import { useFeed } from '@/feed/use-feed'
import { Attachments } from './attachments'
import { Entry } from './entry'
import styles from './pending-message.module.css'
import { PersonText } from './person-message'
import { t } from '../texts'

const words = { get sending() { return t.sendingNow }, get offline() { return t.willSendWhenYoureBackOnline }, get refused() { return t.notSent } }

/** A message sent from this page that is not in the journal yet. */
export function PendingMessage({ roomId, pending }: { roomId: string; pending: Pending }): ReactNode {
  const outbox = useFeed().outbox(roomId)
  return (
    <Entry roomId={roomId} seq={null} kind="person" who={<strong>{t.you}</strong>} time={null}>
      <div className={styles.pending} data-state={pending.state}>
        <div className={styles.said}>
          {pending.text !== '' && <PersonText text={pending.text} />}
          <Attachments files={pending.attachments} />
        </div>
        <p className={styles.state} role={pending.state === 'refused' ? 'alert' : 'status'}>
          {words[pending.state]}
          {pending.problem && `: ${pending.problem}`}
          {pending.problemCode === 'budget_exceeded' && (
            <>
              {' '}
              <Link to="/usage" hash="budgets">
                {t.budgets}
              </Link>
            </>
          )}
        </p>
        {pending.state !== 'sending' && (
          <div className={styles.actions}>
            <Button size="small" onClick={() => void outbox.resend(pending.key)}>
              {t.tryAgain}
            </Button>
            <Button size="small" look="quiet" onClick={() => outbox.discard(pending.key)}>
              {t.discard}
            </Button>
          </div>
        )}
      </div>
    </Entry>
  )
}
