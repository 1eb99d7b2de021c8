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
        <p>Error code: {run.error.code}</p>
      </section>
    )
  }
  if (run.status === 'waiting_for_approval') {
    return (
      <section className={styles.end} data-kind="waiting" aria-label="What it waits for">
        <strong>It needs your approval</strong>
        <p>Allow or deny it in its room.</p>
      </section>
    )
  }
  const receipt = run.receipt ? receiptText(run.receipt) : null
  if (run.status !== 'cancelled' && run.status !== 'interrupted') return null
  return (
    <section className={styles.end} data-kind="stopped" aria-label="How it was stopped">
      <strong>{run.status === 'cancelled' ? 'Stopped' : 'Interrupted'}</strong>
      {receipt && <p>{receipt}</p>}
    </section>
  )
}
