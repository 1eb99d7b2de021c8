import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Segmented } from '@/components/ui/segmented'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill } from '@/lib/api/types'
import { notify } from '@/lib/notices'
import { rate } from '../api/training'
import { linesOf } from '../model/draft'
import { AreaField, TextField } from './found'
import { t } from '../texts'
import styles from './training.module.css'

const scores = [
  { value: '1', label: '1', get hint() { return t.useless } },
  { value: '2', label: '2', get hint() { return t.mostlyWrong } },
  { value: '3', label: '3', get hint() { return t.halfRight } },
  { value: '4', label: '4', get hint() { return t.good } },
  { value: '5', label: '5', get hint() { return t.excellent } },
] as const

type Score = (typeof scores)[number]['value']

export function RateForm({ skill, messageId, onClose }: { skill: Skill; messageId: string; onClose: () => void }): ReactNode {
  const [score, setScore] = useState<Score | null>(null)
  const [comment, setComment] = useState('')
  const [issues, setIssues] = useState('')
  const [improvements, setImprovements] = useState('')
  const queries = useQueryClient()
  const save = useMutation({
    mutationFn: (given: Score) =>
      rate(skill.name, { messageId, score: Number(given), comment, issues: linesOf(issues), improvements: linesOf(improvements) }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: queryKeys.skills.all })
      notify(t.theAnswerWasRated)
      onClose()
    },
  })

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (score !== null) save.mutate(score)
  }

  return (
    <form className={styles.rate} aria-label={t.rateTheAnswer} onSubmit={submit}>
      <div className={styles.score}>
        <Segmented label={t.score} choices={scores} value={score ?? ('' as Score)} onChange={setScore} />
        <span className={styles.meta}>{scores.find(({ value }) => value === score)?.hint ?? t.n1IsUseless5IsExcellent}</span>
      </div>
      <TextField label={t.comment} value={comment} findings={[]} onChange={setComment} />
      <div className={styles.pair}>
        <AreaField label={t.whatWasWrongOnePerLine} rows={2} value={issues} findings={[]} onChange={setIssues} />
        <AreaField label={t.whatWouldBeBetterOnePerLine} rows={2} value={improvements} findings={[]} onChange={setImprovements} />
      </div>
      {save.error && <ProblemNote title={t.theRatingWasNotSaved} error={save.error} />}
      <div className={styles.actions}>
        <Button onClick={onClose}>{t.cancel}</Button>
        <Button type="submit" look="primary" isBusy={save.isPending} disabled={score === null}>
          {t.saveRating}
        </Button>
      </div>
    </form>
  )
}
