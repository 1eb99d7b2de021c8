import type { ReactNode } from 'react'
import { Button } from './button'
import styles from './dialog-body.module.css'
import { Dialog } from './dialog'
import { ProblemText } from './problem-text'

interface ConfirmDialogProps {
  title: string
  /** What the way back is called. */
  keep: string
  confirm: string
  isDangerous?: boolean
  isBusy?: boolean
  /** Why the last attempt failed. */
  error?: Error | null
  onConfirm: () => void
  onClose: () => void
  /** What would happen. */
  children: ReactNode
}

/** Asks before something is deleted, revoked or lost. */
export function ConfirmDialog({ title, keep, confirm, isDangerous = true, isBusy, error, onConfirm, onClose, children }: ConfirmDialogProps): ReactNode {
  return (
    <Dialog title={title} onClose={onClose}>
      <div className={styles.body}>
        {children}
        <ProblemText error={error} />
        <div className={styles.actions}>
          <Button onClick={onClose}>{keep}</Button>
          <Button look={isDangerous ? 'danger' : 'primary'} isBusy={isBusy} onClick={onConfirm}>
            {confirm}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}
