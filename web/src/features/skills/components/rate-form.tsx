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
import styles from './training.module.css'

const scores = [
  { value: '1', label: '1', hint: 'Useless' },
  { value: '2', label: '2', hint: 'Mostly wrong' },
  { value: '3', label: '3', hint: 'Half right' },
  { value: '4', label: '4', hint: 'Good' },
  { value: '5', label: '5', hint: 'Excellent' },
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
      notify('The answer was rated.')
      onClose()
    },
  })

  const submit = (event: FormEvent): void => {
    event.preventDefault()
    if (score !== null) save.mutate(score)
  }

  return (
    <form className={styles.rate} aria-label="Rate the answer" onSubmit={submit}>
      <div className={styles.score}>
        <Segmented label="Score" choices={scores} value={score ?? ('' as Score)} onChange={setScore} />
        <span className={styles.meta}>{scores.find(({ value }) => value === score)?.hint ?? '1 is useless, 5 is excellent.'}</span>
      </div>
      <TextField label="Comment" value={comment} findings={[]} onChange={setComment} />
      <div className={styles.pair}>
        <AreaField label="What was wrong (one per line)" rows={2} value={issues} findings={[]} onChange={setIssues} />
        <AreaField label="What would be better (one per line)" rows={2} value={improvements} findings={[]} onChange={setImprovements} />
      </div>
      {save.error && <ProblemNote title="The rating was not saved" error={save.error} />}
      <div className={styles.actions}>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" look="primary" isBusy={save.isPending} disabled={score === null}>
          Save rating
        </Button>
      </div>
    </form>
  )
}
