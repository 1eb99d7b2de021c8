import { type ReactNode, useId } from 'react'
import styles from './segmented.module.css'

interface Choice<T extends string> {
  value: T
  label: string
  /** Shown when the pointer rests on it. */
  hint?: string
}

interface SegmentedProps<T extends string> {
  label: string
  choices: readonly Choice<T>[]
  value: T
  onChange: (value: T) => void
}

/** One of a few: radio buttons that look like one switch. */
export function Segmented<T extends string>({ label, choices, value, onChange }: SegmentedProps<T>): ReactNode {
  const name = useId()
  return (
    <fieldset className={styles.root}>
      <legend className="visually-hidden">{label}</legend>
      {choices.map((choice) => (
        <label key={choice.value} className={styles.choice} title={choice.hint}>
          <input
            type="radio"
            name={name}
            className="visually-hidden"
            checked={choice.value === value}
            onChange={() => onChange(choice.value)}
          />
          {choice.label}
        </label>
      ))}
    </fieldset>
  )
}
