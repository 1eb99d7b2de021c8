import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import type { FormProblem } from '../model/problems'
import styles from './save-bar.module.css'

interface SaveBarProps {
  isNew: boolean
  isChanged: boolean
  isSaving: boolean
  problem: FormProblem | null
  onSave: () => void
  onTest: () => void
  onDiscard: () => void
}

/** Stands below the form while there is something to save. */
export function SaveBar({ isNew, isChanged, isSaving, problem, onSave, onTest, onDiscard }: SaveBarProps): ReactNode {
  if (!isNew && !isChanged) return null
  return (
    <div className={styles.bar}>
      {problem ? (
        <p className={styles.problem} role={problem.place === null ? 'alert' : undefined}>
          {problem.place === null ? problem.text : 'It was not saved: see what is marked above.'}
        </p>
      ) : (
        <p className={styles.state}>{isNew ? 'Not made yet' : 'Unsaved changes'}</p>
      )}
      <div className={styles.actions}>
        {isNew ? (
          <Button isBusy={isSaving} onClick={onTest}>
            Make and test it
          </Button>
        ) : (
          <Button disabled={isSaving} onClick={onDiscard}>
            Discard
          </Button>
        )}
        <Button look="primary" isBusy={isSaving} onClick={onSave}>
          {isNew ? 'Make the agent' : isSaving ? 'Saving' : 'Save'}
        </Button>
      </div>
    </div>
  )
}
