import { type ReactNode, useId, useState } from 'react'
import styles from './member-settings.module.css'

interface NumberOptionProps {
  label: string
  hint?: string
  value: number
  least: number
  most: number
  onChange: (value: number) => void
}

/** A whole number that is saved when its field is left, or by Enter. */
export function NumberOption({ label, hint, value, least, most, onChange }: NumberOptionProps): ReactNode {
  const [typed, setTyped] = useState<string | null>(null)
  const id = useId()
  const take = (): void => {
    const number = Number(typed)
    if (typed !== null && typed.trim() !== '' && Number.isInteger(number)) {
      const kept = Math.min(most, Math.max(least, number))
      if (kept !== value) onChange(kept)
    }
    setTyped(null)
  }
  return (
    <div className={styles.number}>
      <label htmlFor={id}>{label}</label>
      <input
        id={id}
        type="number"
        min={least}
        max={most}
        value={typed ?? value}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onChange={(event) => setTyped(event.target.value)}
        onBlur={take}
        onKeyDown={(event) => event.key === 'Enter' && take()}
      />
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  )
}
