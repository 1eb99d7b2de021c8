import type { ReactNode } from 'react'
import styles from './text.module.css'

/** One sentence about what went wrong, read aloud when it appears; nothing while there is none. */
export function ProblemText({ text }: { text: string | null }): ReactNode {
  if (!text) return null
  return (
    <p className={styles.problem} role="alert">
      {text}
    </p>
  )
}
