import { type ReactNode, useEffect } from 'react'
import { useStore } from '@/lib/store'
import { drawerStore } from './drawer-store'
import { t } from '../texts'
import styles from './shell.module.css'

/** A rail on the left, next to the page; on a narrow screen the rail is a drawer. */
export function Shell({ rail, banner, children }: { rail: ReactNode; banner: ReactNode; children: ReactNode }): ReactNode {
  const isOpen = useStore(drawerStore)

  useEffect(() => {
    if (!isOpen) return
    const close = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') drawerStore.set(false)
    }
    document.addEventListener('keydown', close)
    return () => document.removeEventListener('keydown', close)
  }, [isOpen])

  return (
    <div className={styles.shell} data-drawer={isOpen ? 'open' : 'closed'}>
      <a className={styles.skip} href="#page">
        {t.skipToContent}
      </a>
      <nav className={styles.rail} aria-label={t.rooms}>
        {rail}
      </nav>
      <button
        type="button"
        className={styles.veil}
        aria-label={t.closeTheRoomList}
        tabIndex={isOpen ? 0 : -1}
        onClick={() => drawerStore.set(false)}
      />
      <main className={styles.page} id="page" tabIndex={-1}>
        {banner}
        {children}
      </main>
    </div>
  )
}
