import type { ReactNode } from 'react'
import { PageBar } from './page-bar'
import styles from './page-note.module.css'

interface PageNoteProps {
  title: string
  detail?: string
  children?: ReactNode
}

/** A page with nothing to show but the reason. */
export function PageNote({ title, detail, children }: PageNoteProps): ReactNode {
  return (
    <>
      <PageBar> </PageBar>
      <div className={styles.note}>
        <h1>{title}</h1>
        {detail !== undefined && <p className={styles.detail}>{detail}</p>}
        {children}
      </div>
    </>
  )
}
