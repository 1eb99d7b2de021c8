import { type ReactNode, useId } from 'react'
import base from './control.module.css'
import styles from './form-field.module.css'
import textStyles from './text.module.css'

/** What the control itself has to be given, so that label, hint and problem belong to it. */
export interface ControlProps {
  id: string
  'aria-describedby'?: string
  'aria-invalid'?: true
  className?: string
}

interface FormFieldProps {
  label: string
  hint?: ReactNode
  /** The validation error, shown next to the field rather than at the end of the form. */
  problem?: string | null
  children: (control: ControlProps) => ReactNode
}

export function FormField({ label, hint, problem, children }: FormFieldProps): ReactNode {
  const id = useId()
  const described = [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(' ')
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={base.label}>{label}</label>
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': problem ? true : undefined,
        className: styles.control,
      })}
      {problem && (
        <p id={`${id}-problem`} className={textStyles.problem} role="alert">
          {problem}
        </p>
      )}
      {hint && (
        <p id={`${id}-hint`} className={base.hint}>
          {hint}
        </p>
      )}
    </div>
  )
}
