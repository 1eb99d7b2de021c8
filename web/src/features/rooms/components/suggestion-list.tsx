import { type ReactNode, useEffect, useRef } from 'react'
import { AgentMark } from '@/components/ui/agent-mark'
import type { Suggestions } from '../model/suggestions'
import styles from './message-field.module.css'

interface SuggestionListProps {
  suggestions: Suggestions
  chosen: number
  onTake: (index: number) => void
}

/** The field keeps the focus and handles the keys. */
export function SuggestionList({ suggestions, chosen, onTake }: SuggestionListProps): ReactNode {
  const list = useRef<HTMLUListElement>(null)
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' })
  }, [chosen])
  return (
    <ul ref={list} className={styles.list} role="listbox" id="suggestions" aria-label={suggestions.label}>
      {suggestions.list.map(({ key, name, detail, chosen: taken }, index) => (
        // oxlint-disable-next-line jsx-a11y/click-events-have-key-events
        <li
          key={key}
          id={`suggestion-${key}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === chosen}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onTake(index)}
        >
          {taken.kind === 'agent' && <AgentMark id={key} name={name} size="small" />}
          <span className={styles.name} dir="auto">{name}</span>
          {detail && <span className={styles.detail}>{detail}</span>}
        </li>
      ))}
    </ul>
  )
}
