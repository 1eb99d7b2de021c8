import { type ReactNode, useEffect } from 'react'
import { skippedPage } from '@/feed/pages'
import { useFeed, useRoom } from '@/feed/use-feed'
import { t } from '../texts'
import styles from './skipped-row.module.css'

/** Between an early message that a link led to and the newest ones. It loads what is missing as it comes into sight. */
export function SkippedRow({ roomId }: { roomId: string }): ReactNode {
  const feed = useFeed()
  const after = useRoom(roomId, (view) => view.state?.skipped?.after ?? null)
  const isLoading = useRoom(roomId, (view) => view.isLoadingOlder)
  useEffect(() => {
    if (after === null || isLoading) return
    // Not while the list is on its way past it.
    const timer = setTimeout(() => void feed.room(roomId).loadPage(skippedPage).catch(() => {}), 150)
    return () => clearTimeout(timer)
  }, [feed, roomId, after, isLoading])
  return <p className={styles.skipped}>{t.loading}</p>
}
