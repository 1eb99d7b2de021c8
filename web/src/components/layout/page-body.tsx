import { type ReactNode, useEffect } from 'react'
import { classNames } from '@/lib/class-names'
import { setPageTitle } from '@/lib/page-title'
import { PageBar } from './page-bar'
import { Trail } from './trail'
import styles from './page-body.module.css'

interface PageBodyProps {
  title: string
  /** The link to the page that this one belongs to. */
  back?: ReactNode
  /** What stands before the title. */
  mark?: ReactNode
  actions?: ReactNode
  /** `wide` for lists, `narrow` for forms and for what is read. */
  width?: 'wide' | 'narrow'
  /** What stands beside the page. */
  aside?: ReactNode
  children: ReactNode
}

/** The frame of every page but a room: its bar, and below it what scrolls. */
export function PageBody({ title, back, mark, actions, width = 'wide', aside, children }: PageBodyProps): ReactNode {
  useEffect(() => {
    setPageTitle(title)
  }, [title])
  return (
    <>
      <PageBar actions={actions}>
        <Trail back={back}>
          {mark}
          <h1 dir="auto">{title}</h1>
        </Trail>
      </PageBar>
      <div className={styles.split} data-aside={aside ? true : undefined}>
        <div className={styles.scroll}>
          <div className={classNames(styles.body, styles[width])}>{children}</div>
        </div>
        {aside}
      </div>
    </>
  )
}
