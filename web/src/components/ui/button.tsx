import type { ComponentProps, ReactNode } from 'react'
import { classNames } from '@/lib/class-names'
import styles from './button.module.css'

interface ButtonProps extends ComponentProps<'button'> {
  look?: 'plain' | 'primary' | 'quiet' | 'danger'
  size?: 'normal' | 'small'
  /** Shows that what it started is not done yet, and keeps it from being started again. */
  isBusy?: boolean
}

export function Button({ look = 'plain', size = 'normal', isBusy = false, className, disabled, children, ...rest }: ButtonProps): ReactNode {
  return (
    <button
      type="button"
      {...rest}
      disabled={disabled || isBusy}
      aria-busy={isBusy || undefined}
      className={classNames(styles.button, styles[look], styles[size], className)}
    >
      {children}
    </button>
  )
}

interface IconButtonProps extends ComponentProps<'button'> {
  /** Read aloud, and shown when the pointer rests on it. */
  label: string
}

export function IconButton({ label, className, children, ...rest }: IconButtonProps): ReactNode {
  return (
    <button type="button" title={label} {...rest} aria-label={label} className={classNames(styles.icon, className)}>
      {children}
    </button>
  )
}
