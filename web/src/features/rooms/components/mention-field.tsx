import { type ReactNode, type RefObject, useLayoutEffect, useState } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import type { Agent } from '@/lib/api/types'
import { complete, completionAt } from '../model/mentions'
import styles from './mention-field.module.css'

interface MentionFieldProps {
  ref: RefObject<HTMLTextAreaElement | null>
  text: string
  agents: readonly Agent[]
  onChange: (text: string) => void
  onSend: () => void
  onFiles: (files: FileList) => void
}

/** The text field of the composer: it grows with the text, and completes the names of agents after an @. */
export function MentionField({ ref, text, agents, onChange, onSend, onFiles }: MentionFieldProps): ReactNode {
  const [caret, setCaret] = useState(0)
  const [chosen, setChosen] = useState(0)
  const [isDismissed, setIsDismissed] = useState(false)
  const completion = isDismissed ? null : completionAt(text, caret, agents)

  useLayoutEffect(() => {
    const field = ref.current
    if (!field) return
    field.style.height = 'auto'
    field.style.height = `${field.scrollHeight}px`
  }, [ref, text])

  const take = (index: number): void => {
    const agent = completion?.matches[index]
    if (!completion || !agent) return
    const done = complete(text, completion, caret, agent)
    onChange(done.text)
    setCaret(done.caret)
    requestAnimationFrame(() => ref.current?.setSelectionRange(done.caret, done.caret))
  }

  const pressed = (key: string, isShifted: boolean): boolean => {
    if (completion) {
      const { length } = completion.matches
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
      {completion && (
        <ul className={styles.list} role="listbox" id="mention-list" aria-label="Agents in this room">
          {completion.matches.map((agent, index) => (
            // The field keeps the focus and handles the keys.
            // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
            <li
              key={agent.id}
              id={`mention-${agent.id}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === chosen}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(index)}
            >
              <AgentMark id={agent.id} name={agent.name} size="small" />
              {agent.name}
            </li>
          ))}
        </ul>
      )}
      <textarea
        ref={ref}
        className={styles.field}
        rows={1}
        value={text}
        aria-label="Message"
        aria-autocomplete="list"
        aria-controls={completion ? 'mention-list' : undefined}
        aria-activedescendant={completion?.matches[chosen] ? `mention-${completion.matches[chosen].id}` : undefined}
        placeholder={agents.length > 1 ? 'Say something; @ names one agent' : 'Say something'}
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
