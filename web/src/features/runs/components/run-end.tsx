import type { ReactNode } from 'react'
import type { Run } from '@/lib/api/types'
import { receiptText } from '@/lib/receipt'
import { adviceFor } from '../model/run-words'
import styles from './run-page.module.css'

/** What someone has to know of it: that it waits for them, what went wrong and what to do, or what stopping it took. */
export function RunEnd({ run }: { run: Run }): ReactNode {
  if (run.error) {
    return (
      <section className={styles.end} data-kind="failed" aria-label="Why it failed">
        <strong>{run.error.message}</strong>
        <p>{adviceFor(run.error)}</p>
        <p>Code {run.error.code}</p>
      </section>
    )
  }
  if (run.status === 'waiting_for_approval') {
    return (
      <section className={styles.end} data-kind="waiting" aria-label="What it waits for">
        <strong>It waits for your answer</strong>
        <p>In its room you see what it wants to do, and allow or deny it.</p>
      </section>
    )
  }
  if (run.status !== 'cancelled' && run.status !== 'interrupted') return null
  return (
    <section className={styles.end} data-kind="stopped" aria-label="How it was stopped">
      <strong>{run.status === 'cancelled' ? 'Stopped' : 'Interrupted'}</strong>
      {run.receipt && <p>{receiptText(run.receipt)}</p>}
    </section>
  )
}
