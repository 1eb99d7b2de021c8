import { type ReactNode, useEffect } from 'react'
import { classNames } from '@/lib/class-names'
import { setPageTitle } from '@/lib/page-title'
import { PageBar } from './page-bar'
import styles from './page-body.module.css'

interface PageBodyProps {
  title: string
  /** What comes before the title: the way back. */
  before?: ReactNode
  actions?: ReactNode
  width?: 'wide' | 'narrow'
  children: ReactNode
}

/** A page that is read from top to bottom: its bar, and below it what scrolls. */
export function PageBody({ title, before, actions, width = 'wide', children }: PageBodyProps): ReactNode {
  useEffect(() => {
    setPageTitle(title)
  }, [title])
  return (
    <>
      <PageBar actions={actions}>
        {before}
        <h1 className={styles.title}>{title}</h1>
      </PageBar>
      <div className={styles.scroll}>
        <div className={classNames(styles.body, styles[width])}>{children}</div>
      </div>
    </>
  )
}
