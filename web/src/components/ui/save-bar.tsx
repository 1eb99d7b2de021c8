import type { ReactNode } from 'react'
import { Button } from './button'
import styles from './save-bar.module.css'

interface SaveBarProps {
  /** What is unsaved, or why saving failed. */
  status: ReactNode
  label: string
  isBusy: boolean
  isDisabled?: boolean
  /** Without it the button submits the form that the bar is in. */
  onSave?: () => void
  /** More controls, before the button. */
  children?: ReactNode
}

/** The foot of every form with more than a few fields; it stays in sight while the form scrolls. */
export function SaveBar({ status, label, isBusy, isDisabled, onSave, children }: SaveBarProps): ReactNode {
  return (
    <div className={styles.bar}>
      <div className={styles.status}>{status}</div>
      {children}
      <Button type={onSave ? 'button' : 'submit'} look="primary" isBusy={isBusy} disabled={isDisabled} onClick={onSave}>
        {label}
      </Button>
    </div>
  )
}
