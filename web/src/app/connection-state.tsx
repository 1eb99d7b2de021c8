import { type ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { StatusDot } from '@/components/ui/status-dot'
import { useConnection, useFeed } from '@/feed/use-feed'
import { t } from './texts'
import styles from './connection-state.module.css'

const words = {
  get connecting() { return t.connecting },
  get connected() { return t.connected },
  get reconnecting() { return t.reconnecting },
  get lost() { return t.connectionLost },
}

/** Quiet while all is well. */
export function ConnectionBadge(): ReactNode {
  const { state } = useConnection()
  return (
    <span className={styles.badge} data-state={state} role="status">
      {state !== 'connected' && <StatusDot status="offline" label="" />}
      {words[state]}
    </span>
  )
}

/** Comes only when a person has to know: what is shown may be old, and what they can do about it. */
export function ConnectionBanner(): ReactNode {
  const feed = useFeed()
  const { state } = useConnection()
  if (state !== 'lost') return null
  return (
    <div className={styles.banner} role="alert">
      <span>{t.connectionLostReconnectingNothingYouSentIs}</span>
      <Button size="small" onClick={() => feed.line.retry()}>
        {t.retryNow}
      </Button>
    </div>
  )
}
