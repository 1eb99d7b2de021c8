import { type ComponentProps, type ReactNode, useId } from 'react'
import styles from './control.module.css'

interface FieldProps extends ComponentProps<'input'> {
  label: string
  hint?: ReactNode
}

export function Field({ label, hint, ...rest }: FieldProps): ReactNode {
  const id = useId()
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>{label}</label>
      <input id={id} {...rest} aria-describedby={hint ? `${id}-hint` : undefined} className={styles.control} />
      {hint && (
        <p id={`${id}-hint`} className={styles.hint}>
          {hint}
        </p>
      )}
    </div>
  )
}
