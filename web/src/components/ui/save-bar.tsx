import type { ReactNode } from 'react'
import { classNames } from '@/lib/class-names'
import { Button } from './button'
import styles from './save-bar.module.css'

interface SaveBarProps {
  /** `docked` is the foot of a column that does not scroll; `floating` stays in sight at the foot of a long page. */
  layout: 'docked' | 'floating'
  /** What is unsaved, or why saving failed. */
  status: ReactNode
  label: string
  isBusy: boolean
  isDisabled?: boolean
  onSave: () => void
  /** More controls, before the button. */
  children?: ReactNode
}

export function SaveBar({ layout, status, label, isBusy, isDisabled, onSave, children }: SaveBarProps): ReactNode {
  return (
    <div className={classNames(styles.bar, styles[layout])}>
      <div className={styles.status}>{status}</div>
      {children}
      <Button look="primary" isBusy={isBusy} disabled={isDisabled} onClick={onSave}>
        {label}
      </Button>
    </div>
  )
}
