import { X } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import { FormField } from './form-field'
import { t } from '../texts'
import styles from './name-list.module.css'

interface NameListProps {
  label: string
  hint?: ReactNode
  problem?: string | null
  placeholder?: string
  names: readonly string[]
  /** What is offered while typing. */
  known?: readonly string[]
  onChange: (names: readonly string[]) => void
}

/** Several names in one field: Enter or a comma takes what was typed, a press on a name takes it back to change it. */
export function NameList({ label, hint, problem, placeholder, names, known = [], onChange }: NameListProps): ReactNode {
  const [text, setText] = useState('')
  const input = useRef<HTMLInputElement>(null)

  const take = (typed: string, before = names): void => {
    const fresh = typed.split(',').map((name) => name.trim()).filter((name) => name !== '' && !before.includes(name))
    setText('')
    if (fresh.length > 0 || before !== names) onChange([...before, ...new Set(fresh)])
  }

  const change = (name: string): void => {
    take(text, names.filter((other) => other !== name))
    setText(name)
    input.current?.focus()
  }

  const pressed = (event: KeyboardEvent): void => {
    if (event.nativeEvent.isComposing) return
    if ((event.key === 'Enter' || event.key === ',') && text.trim() !== '') take(text)
    else if (event.key === 'Backspace' && text === '' && names.length > 0) change(names.at(-1) ?? '')
    // Enter in an empty one would send the whole form.
    else if (event.key !== 'Enter') return
    event.preventDefault()
  }

  return (
    <FormField label={label} hint={hint} problem={problem}>
      {(control) => (
        <div className={styles.box} data-invalid={problem ? true : undefined}>
          {names.map((name) => (
            <span key={name} className={styles.name}>
              <button type="button" className={styles.text} aria-label={t.change(name)} title={t.changeIt} onClick={() => change(name)}>
                {name}
              </button>
              <button
                type="button"
                className={styles.remove}
                aria-label={t.remove(name)}
                title={t.removeIt}
                onClick={() => {
                  onChange(names.filter((other) => other !== name))
                  input.current?.focus()
                }}
              >
                <X size={13} aria-hidden />
              </button>
            </span>
          ))}
          <input
            ref={input}
            {...control}
            className={styles.input}
            value={text}
            list={known.length > 0 ? `${control.id}-known` : undefined}
            placeholder={names.length === 0 ? placeholder : undefined}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            onChange={(event) => {
              const { value } = event.target
              const kind = 'inputType' in event.nativeEvent ? event.nativeEvent.inputType : undefined
              const isChosen = known.includes(value) && (kind === undefined || kind === 'insertReplacementText')
              // What was pasted with commas, or chosen from what is offered, is whole.
              if (value.includes(',') || isChosen) take(value)
              else setText(value)
            }}
            onKeyDown={pressed}
            onBlur={() => take(text)}
          />
          {known.length > 0 && (
            <datalist id={`${control.id}-known`}>
              {known.filter((name) => !names.includes(name)).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </datalist>
          )}
        </div>
      )}
    </FormField>
  )
}
