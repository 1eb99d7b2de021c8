import { type FormEvent, type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { VisibleText } from '@/components/ui/visible-text'
import type { AnswerFormProps } from './approval-choice'
import styles from './question-form.module.css'
import { TimeLeft } from './time-left'

interface Question {
  question: string
  options: readonly string[]
}

export function QuestionForm({ approval, sent, onAnswer }: AnswerFormProps): ReactNode {
  const { question, options } = questionIn(approval.input)
  const [text, setText] = useState('')
  const id = useId()
  const say = (answer: string): void => onAnswer({ decision: 'allow', input: { answer } })

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (text.trim() !== '') say(text.trim())
  }

  return (
    <form className={styles.form} onSubmit={submit}>
      <div className={styles.title}>
        <label htmlFor={id}>
          <VisibleText text={question} />
        </label>
        <TimeLeft until={approval.expiresAt} className={styles.left} />
      </div>
      {options.length > 0 && (
        <div className={styles.row}>
          {options.map((option) => (
            <Button key={option} disabled={sent !== null} onClick={() => say(option)}>
              <VisibleText text={option} />
            </Button>
          ))}
        </div>
      )}
      <div className={styles.row}>
        <input id={id} className={styles.input} value={text} placeholder="Your answer" autoComplete="off" onChange={(event) => setText(event.target.value)} />
        <Button type="submit" look="primary" isBusy={sent?.decision === 'allow'} disabled={text.trim() === ''}>
          Answer
        </Button>
        <Button look="quiet" isBusy={sent?.decision === 'deny'} disabled={sent !== null} onClick={() => onAnswer({ decision: 'deny' })}>
          Do not answer
        </Button>
      </div>
    </form>
  )
}

function questionIn(input: unknown): Question {
  const record = typeof input === 'object' && input !== null ? (input as Record<string, unknown>) : {}
  const question = typeof record.question === 'string' ? record.question : JSON.stringify(input)
  const listed: unknown[] = Array.isArray(record.options) ? record.options : []
  const options = listed.map((option) => (typeof option === 'string' ? option : labelOf(option))).filter((label) => label !== '')
  return { question, options: [...new Set(options)] }
}

function labelOf(option: unknown): string {
  const { label } = (typeof option === 'object' && option !== null ? option : {}) as { label?: unknown }
  return typeof label === 'string' ? label : ''
}
