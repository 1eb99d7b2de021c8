import { type ReactNode, type RefObject, useEffect, useLayoutEffect, useState } from 'react'
import { flushSync } from 'react-dom'
import type { Agent } from '@/lib/api/types'
import { type MentionedFolder, pathAt } from '../model/file-mentions'
import { pastedFiles } from '../model/pasted'
import type { Skill } from '../model/skill'
import { runSlashCommand } from '../model/slash-commands'
import { suggestionsAt } from '../model/suggestions'
import styles from './message-field.module.css'
import { SuggestionList } from './suggestion-list'
import { t } from '../texts'

interface MessageFieldProps {
  ref: RefObject<HTMLTextAreaElement | null>
  text: string
  agents: readonly Agent[]
  skills: readonly Skill[]
  /** The folder of the room's project that a path leads into. */
  files?: MentionedFolder | null
  /** A path is being typed that leads into this folder, or none. */
  onFolder?: (folder: string | null) => void
  onChange: (text: string) => void
  onSend: () => void
  /** Gets the last message of one's own back, to change it and send it again. */
  onRecall: () => void
  onFiles: (files: Iterable<File>) => void
  onSkill: (skill: Skill) => void
}

/** The text field of the composer: it grows with the text, and completes agents after an @, skills and commands after a /. */
export function MessageField({ ref, text, agents, skills, files = null, onFolder, onChange, onSend, onRecall, onFiles, onSkill }: MessageFieldProps): ReactNode {
  const [caret, setCaret] = useState(0)
  const [chosen, setChosen] = useState(0)
  const [isDismissed, setIsDismissed] = useState(false)
  const suggestions = isDismissed ? null : suggestionsAt(text, caret, agents, skills, files)

  const folder = isDismissed ? null : (pathAt(text, caret)?.folder ?? null)
  useEffect(() => onFolder?.(folder), [folder, onFolder])

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
    if (taken.kind === 'command') {
      flushSync(() => onChange(''))
      runSlashCommand(taken.command)
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
    if (key === 'ArrowUp' && text === '') onRecall()
    // The keyboard of a phone has no Shift+Enter, so its Enter begins a new line; the button sends.
    else if (key === 'Enter' && !isShifted && !isTouch()) onSend()
    else return false
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
        aria-label={t.message}
        aria-autocomplete="list"
        aria-controls={suggestions ? 'suggestions' : undefined}
        aria-activedescendant={suggestions?.list[chosen] ? `suggestion-${suggestions.list[chosen].key}` : undefined}
        dir="auto"
        enterKeyHint={isTouch() ? 'enter' : 'send'}
        placeholder={placeholder(agents, skills.length)}
        onChange={(event) => {
          onChange(event.target.value)
          setCaret(event.target.selectionStart)
          setChosen(0)
          setIsDismissed(false)
        }}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart)}
        onBlur={() => setIsDismissed(true)}
        onPaste={(event) => {
          const pasted = pastedFiles(event.clipboardData)
          if (pasted.length === 0) return
          event.preventDefault()
          onFiles(pasted)
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

function placeholder(agents: readonly Agent[], skills: number): string {
  const only = agents.length === 1 ? agents[0] : undefined
  const hints = [agents.length > 1 && t.toMentionAnAgent, skills > 0 ? t.forSkillsAndCommands : t.forCommands].filter(Boolean)
  const start = only ? t.messageWith(only.name) : t.messageNow
  return `${start} (${hints.join(', ')})`
}

function isTouch(): boolean {
  return globalThis.matchMedia?.('(pointer: coarse)').matches ?? false
}
