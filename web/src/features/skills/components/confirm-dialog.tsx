import type { ReactNode } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import { ProblemNote } from '@/components/ui/problem-note'
import styles from './confirm-dialog.module.css'

interface ConfirmDialogProps {
  title: string
  /** What the way back is called. */
  keep: string
  confirm: string
  isDangerous?: boolean
  isBusy?: boolean
  problem?: unknown
  onConfirm: () => void
  onClose: () => void
  children: ReactNode
}

export function ConfirmDialog(props: ConfirmDialogProps): ReactNode {
  const { title, keep, confirm, isDangerous = true, isBusy, problem, onConfirm, onClose, children } = props
  return (
    <Dialog title={title} onClose={onClose}>
      <div className={styles.content}>
        {children}
        {problem != null && <ProblemNote title="It was not done" error={problem} />}
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
