import type { ReactNode } from 'react'
import type { Run } from '@/lib/api/types'
import { receiptText } from '@/lib/receipt'
import { adviceFor } from '../model/run-words'
import { t } from '../texts'
import styles from './run-page.module.css'

/** What someone has to know of it: that it waits for them, what went wrong and what to do, or what stopping it took. */
export function RunEnd({ run }: { run: Run }): ReactNode {
  if (run.error) {
    return (
      <section className={styles.end} data-kind="failed" aria-label={t.whyItFailed}>
        <strong>{run.error.message}</strong>
        <p>{adviceFor(run.error)}</p>
        <p>{t.errorCode(run.error.code)}</p>
      </section>
    )
  }
  if (run.status === 'waiting_for_approval') {
    return (
      <section className={styles.end} data-kind="waiting" aria-label={t.whatItWaitsFor}>
        <strong>{t.itNeedsYourApproval}</strong>
        <p>{t.allowOrDenyItInItsRoom}</p>
      </section>
    )
  }
  const receipt = run.receipt ? receiptText(run.receipt) : null
  if (run.status !== 'cancelled' && run.status !== 'interrupted') return null
  return (
    <section className={styles.end} data-kind="stopped" aria-label={t.howItWasStopped}>
      <strong>{run.status === 'cancelled' ? t.stopped : t.interrupted}</strong>
      {receipt && <p>{receipt}</p>}
    </section>
  )
}
