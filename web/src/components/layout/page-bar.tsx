import { PanelLeft } from 'lucide-react'
import { type ReactNode, createContext, use } from 'react'
import { IconButton } from '../ui/button'
import { drawerStore } from './drawer-store'
import { t } from '../texts'
import styles from './page-bar.module.css'

/** The content at the end of every page's bar, provided by the app. */
export const PageBarEnd = createContext<ReactNode>(null)

export function PageBar({ children, actions }: { children: ReactNode; actions?: ReactNode }): ReactNode {
  const end = use(PageBarEnd)
  return (
    <header className={styles.bar}>
      <IconButton label={t.rooms} className={styles.toggle} onClick={() => drawerStore.set(true)}>
        <PanelLeft size={18} aria-hidden />
      </IconButton>
      <div className={styles.title}>{children}</div>
      <div className={styles.actions}>
        {end}
        {actions}
      </div>
    </header>
  )
}
