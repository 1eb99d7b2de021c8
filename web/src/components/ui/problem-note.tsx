import type { ReactNode } from 'react'
import { explain } from '@/lib/api/client'
import { Button } from './button'
import { t } from '../texts'
import styles from './problem-note.module.css'

/** What could not be read, why, and the way to try again. */
export function ProblemNote({ title, error, onRetry }: { title: string; error: unknown; onRetry?: () => void }): ReactNode {
  return (
    <div className={styles.note} role="alert">
      <div>
        <strong>{title}</strong>
        <p>{explain(error)}</p>
      </div>
      {onRetry && (
        <Button size="small" onClick={onRetry}>
          {t.tryAgain}
        </Button>
      )}
    </div>
  )
}
