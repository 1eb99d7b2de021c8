import { type ReactNode, useId } from 'react'
import styles from './select.module.css'

interface Option {
  value: string
  label: string
}

interface SelectProps {
  label: string
  value: string
  options: readonly Option[]
  onChange: (value: string) => void
}

/** One of many, by the browser's own list: it knows keyboards and phones best. */
export function Select({ label, value, options, onChange }: SelectProps): ReactNode {
  const id = useId()
  return (
    <div className={styles.root}>
      <label htmlFor={id}>{label}</label>
      <select id={id} value={value} onChange={(event) => onChange(event.target.value)}>
        {options.map((option) => (
          <option key={option.value} value={option.value}>
            {option.label}
          </option>
        ))}
      </select>
    </div>
  )
}
