import { type FormEvent, type ReactNode, useId, useState } from 'react'
import { Button } from '@/components/ui/button'
import { VisibleText } from '@/components/ui/visible-text'
import { type Question, answerTo, questionsIn } from '../model/questions'
import type { AnswerFormProps } from './approval-choice'
import styles from './question-form.module.css'
import { TimeLeft } from './time-left'
import { t } from '../texts'

/** Questions of an agent: choose from its options or type, each for itself. A single question with options needs one click. */
export function QuestionForm({ approval, sent, onAnswer }: AnswerFormProps): ReactNode {
  const questions = questionsIn(approval.input)
  const [answers, setAnswers] = useState<readonly string[]>(() => questions.map(() => ''))
  const isComplete = answers.every((answer) => answer.trim() !== '')
  const send = (given: readonly string[]): void => onAnswer({ decision: 'allow', input: answerTo(approval.input, questions, given.map((answer) => answer.trim())) })

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (isComplete) send(answers)
  }

  const answer = (index: number, text: string, isChosen: boolean): void => {
    const next = answers.with(index, text)
    setAnswers(next)
    if (isChosen && questions.length === 1 && !questions[0]?.allowsSeveral) send(next)
  }

  return (
    <form className={styles.form} onSubmit={submit}>
      {questions.map((question, index) => (
        <QuestionField
          key={question.text}
          question={question}
          value={answers[index] ?? ''}
          isSent={sent !== null}
          after={index === 0 && <TimeLeft until={approval.expiresAt} isQuestion className={styles.left} />}
          onChange={(text, isChosen) => answer(index, text, isChosen)}
        />
      ))}
      <div className={styles.row}>
        <Button type="submit" look="primary" isBusy={sent?.decision === 'allow'} disabled={!isComplete}>
          {questions.length > 1 ? t.sendAnswers : t.answer}
        </Button>
        <Button look="quiet" isBusy={sent?.decision === 'deny'} disabled={sent !== null} onClick={() => onAnswer({ decision: 'deny' })}>
          {t.skip}
        </Button>
      </div>
    </form>
  )
}

interface QuestionFieldProps {
  question: Question
  value: string
  isSent: boolean
  after: ReactNode
  /** `isChosen`: by an option, not by typing. */
  onChange: (text: string, isChosen: boolean) => void
}

function QuestionField({ question, value, isSent, after, onChange }: QuestionFieldProps): ReactNode {
  const id = useId()
  const chosen = question.allowsSeveral ? value.split(', ').filter(Boolean) : [value]
  const choose = (label: string): void => {
    if (!question.allowsSeveral) return onChange(label, true)
    onChange((chosen.includes(label) ? chosen.filter((other) => other !== label) : [...chosen, label]).join(', '), true)
  }
  return (
    <div className={styles.question}>
      <div className={styles.title}>
        <label htmlFor={id} dir="auto">
          <VisibleText text={question.text} />
        </label>
        {after}
      </div>
      {question.options.length > 0 && (
        <div className={styles.row}>
          {question.options.map(({ label, description }) => (
            <Button key={label} disabled={isSent} aria-pressed={chosen.includes(label)} title={description ?? undefined} onClick={() => choose(label)}>
              <VisibleText text={label} />
            </Button>
          ))}
        </div>
      )}
      <input id={id} className={styles.input} value={value} placeholder={t.yourAnswer} autoComplete="off" dir="auto" onChange={(event) => onChange(event.target.value, false)} />
    </div>
  )
}
