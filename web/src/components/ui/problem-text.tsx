import type { ReactNode } from 'react'
import { explain } from '@/lib/api/client'
import styles from './text.module.css'

/** Why the last attempt failed, read aloud when it appears; nothing without an error. */
export function ProblemText({ error }: { error: Error | null | undefined }): ReactNode {
  if (!error) return null
  return (
    <p className={styles.problem} role="alert">
      {explain(error)}
    </p>
  )
}
