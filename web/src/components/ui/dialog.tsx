import { X } from 'lucide-react'
import { type ReactNode, useId } from 'react'
import { classNames } from '@/lib/class-names'
import { IconButton } from './button'
import styles from './dialog.module.css'
import { useModal } from './use-modal'
import { t } from '../texts'

interface DialogProps {
  title: string
  onClose: () => void
  width?: 'normal' | 'wide'
  /** Closes only by a button inside: what it shows cannot be shown again. */
  isSticky?: boolean
  /** No visible title bar: the content begins with a field of its own. */
  isBare?: boolean
  children: ReactNode
}

/** The browser's own modal dialog: it keeps the focus inside, closes on Escape and makes the rest inert. */
export function Dialog({ title, onClose, width = 'normal', isBare = false, isSticky = false, children }: DialogProps): ReactNode {
  const ref = useModal()
  const titleId = useId()

  return (
    // A press on the veil closes; keyboards have Escape.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={ref}
      className={classNames(styles.dialog, width === 'wide' && styles.wide, isBare && styles.bare)}
      aria-labelledby={isBare ? undefined : titleId}
      aria-label={isBare ? title : undefined}
      onCancel={(event) => {
        event.preventDefault()
        if (!isSticky) onClose()
      }}
      onClick={(event) => {
        if (event.target === ref.current && !isSticky) onClose()
      }}
    >
      <div className={styles.content}>
        {!isBare && (
          <header className={styles.header}>
            <h2 id={titleId}>{title}</h2>
            {!isSticky && (
              <IconButton label={t.close} onClick={onClose}>
                <X size={18} aria-hidden />
              </IconButton>
            )}
          </header>
        )}
        {children}
      </div>
    </dialog>
  )
}
