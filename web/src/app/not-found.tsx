import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { PageBar } from '@/components/layout/page-bar'
import styles from './root.module.css'

export function NotFound(): ReactNode {
  return (
    <>
      <PageBar> </PageBar>
      <div className={styles.note}>
        <h1>There is no such page</h1>
        <p>
          The address may be from another version. <Link to="/">Go to your last room</Link>
        </p>
      </div>
    </>
  )
}
