import type { ReactNode } from 'react'
import type { Snippet } from '@/lib/api/types'
import styles from './highlighted.module.css'

/** A text with the words that were looked for. */
export function Highlighted({ snippet: { text, highlights } }: { snippet: Snippet }): ReactNode {
  const parts: ReactNode[] = []
  let from = 0
  for (const { start, end } of highlights) {
    parts.push(text.slice(from, start), <mark key={start} className={styles.mark}>{text.slice(start, end)}</mark>)
    from = end
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  )
}
