import { type ReactNode, type RefObject, useLayoutEffect, useState } from 'react'
import { flushSync } from 'react-dom'
import type { Agent } from '@/lib/api/types'
import type { Skill } from '../model/skill'
import { suggestionsAt } from '../model/suggestions'
import styles from './message-field.module.css'
import { SuggestionList } from './suggestion-list'

interface MessageFieldProps {
  ref: RefObject<HTMLTextAreaElement | null>
  text: string
  agents: readonly Agent[]
  skills: readonly Skill[]
  onChange: (text: string) => void
  onSend: () => void
  onFiles: (files: FileList) => void
  onSkill: (skill: Skill) => void
}

/** The text field of the composer: it grows with the text, and completes agents after an @ and skills after a /. */
export function MessageField({ ref, text, agents, skills, onChange, onSend, onFiles, onSkill }: MessageFieldProps): ReactNode {
  const [caret, setCaret] = useState(0)
  const [chosen, setChosen] = useState(0)
  const [isDismissed, setIsDismissed] = useState(false)
  const suggestions = isDismissed ? null : suggestionsAt(text, caret, agents, skills)

  useLayoutEffect(() => {
    const field = ref.current
    if (!field) return
    field.style.height = 'auto'
    field.style.height = `${field.scrollHeight}px`
  }, [ref, text])

  const take = (index: number): void => {
    const taken = suggestions?.list[index]?.chosen
    if (!taken) return
    setChosen(0)
    if (taken.kind === 'skill') {
      setIsDismissed(true)
      onSkill(taken.skill)
      return
    }
    // At once, not with the next picture: by then more may have been typed.
    flushSync(() => onChange(taken.text))
    setCaret(taken.caret)
    ref.current?.setSelectionRange(taken.caret, taken.caret)
  }

  const pressed = (key: string, isShifted: boolean): boolean => {
    if (suggestions) {
      const { length } = suggestions.list
      if (key === 'ArrowDown') setChosen((chosen + 1) % length)
      else if (key === 'ArrowUp') setChosen((chosen - 1 + length) % length)
      else if (key === 'Escape') setIsDismissed(true)
      else if (key === 'Tab' || (key === 'Enter' && !isShifted)) take(chosen)
      else return false
      return true
    }
    if (key !== 'Enter' || isShifted) return false
    onSend()
    return true
  }

  return (
    <div className={styles.place}>
      {suggestions && <SuggestionList suggestions={suggestions} chosen={chosen} onTake={take} />}
      <textarea
        ref={ref}
        className={styles.field}
        rows={1}
        value={text}
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={suggestions ? 'suggestions' : undefined}
        aria-activedescendant={suggestions?.list[chosen] ? `suggestion-${suggestions.list[chosen].key}` : undefined}
        placeholder={placeholder(agents.length, skills.length)}
        onChange={(event) => {
          onChange(event.target.value)
          setCaret(event.target.selectionStart)
          setChosen(0)
          setIsDismissed(false)
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onBlur={() => setIsDismissed(true)}
        onPaste={(event) => {
          if (event.clipboardData.files.length === 0) return
          event.preventDefault()
          onFiles(event.clipboardData.files)
        }}
        onKeyDown={(event) => {
          // While a word is being composed, Enter belongs to the input method.
          if (event.nativeEvent.isComposing || event.altKey || event.ctrlKey || event.metaKey) return
          if (pressed(event.key, event.shiftKey)) event.preventDefault()
        }}
      />
    </div>
  )
}

function placeholder(agents: number, skills: number): string {
  const hints = [agents > 1 && '@ names one agent', skills > 0 && '/ calls a skill'].filter(Boolean)
  return ['Say something', ...hints].join('; ')
}
