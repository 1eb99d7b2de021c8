import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { Dialog } from '@/components/ui/dialog'
import dialogs from '@/components/ui/dialog-body.module.css'
import { Field } from '@/components/ui/field'
import { ProblemText } from '@/components/ui/problem-text'
import { Segmented } from '@/components/ui/segmented'
import { Select } from '@/components/ui/select'
import { billingQuery } from '@/lib/api/queries'
import type { Budget } from '@/lib/api/types'
import { periodWords } from '@/lib/budget'
import { changeLimit, createBudget } from '../api/budgets'
import { type BudgetNames, readLimit, subjectOf } from '../model/budget-list'
import { t } from '../texts'
import styles from './budgets.module.css'

// The budget of a user is created with the API or the CLI: no page lists users.
const scopes = [
  { value: 'workspace', get label() { return t.workspace }, get hint() { return t.allRuns } },
  { value: 'agent', get label() { return t.agent }, get hint() { return t.theRunsOfOneAgent } },
  { value: 'room', get label() { return t.room }, get hint() { return t.theRunsInOneRoom } },
] as const
type Scope = (typeof scopes)[number]['value']

const periods = [
  { value: 'day', get label() { return t.day } },
  { value: 'week', get label() { return t.week }, get hint() { return t.fromMonday } },
  { value: 'month', get label() { return t.month } },
  { value: 'total', get label() { return t.total }, get hint() { return t.doesNotReset } },
] as const

/** Creates a budget, or changes the limit of one. */
export function BudgetDialog({ budget, names, onClose }: { budget?: Budget; names: BudgetNames; onClose: () => void }): ReactNode {
  const [scope, setScope] = useState<Scope>('workspace')
  const [chosen, setChosen] = useState<string | null>(null)
  const [period, setPeriod] = useState<Budget['period']>('month')
  const [text, setText] = useState(budget ? String(budget.limit_usd) : '')
  const queries = useQueryClient()
  const subjects = scope === 'agent' ? names.agents : scope === 'room' ? names.rooms : []
  const subject = scope === 'workspace' ? null : (subjects.find(({ id }) => id === chosen) ?? subjects[0])?.id
  const limit = readLimit(text)
  const save = useMutation({
    mutationFn: async (value: number) => (budget ? changeLimit(budget, value) : createBudget({ scope, id: subject, period, limit_usd: value })),
    onSuccess: onClose,
    // Also after a failure: a change is two requests, of which the first may have succeeded.
    onSettled: () => queries.invalidateQueries(billingQuery),
  })

  return (
    <Dialog title={budget ? t.changeBudget : t.newBudget} onClose={onClose}>
      <form
        className={dialogs.body}
        onSubmit={(event) => {
          event.preventDefault()
          if (limit !== null) save.mutate(limit)
        }}
      >
        {budget ? (
          <p>
            {subjectOf(budget, names)}, {periodWords[budget.period]}
          </p>
        ) : (
          <>
            <div className={styles.choice}>
              <span aria-hidden>{t.whatItLimits}</span>
              <Segmented label={t.whatItLimits} choices={scopes} value={scope} onChange={setScope} />
            </div>
            {scope !== 'workspace' && (
              <Select
                label={scope === 'agent' ? t.agent : t.room}
                value={subject ?? ''}
                options={subjects.map(({ id, name }) => ({ value: id, label: name }))}
                onChange={setChosen}
              />
            )}
            <div className={styles.choice}>
              <span aria-hidden>{t.period}</span>
              <Segmented label={t.period} choices={periods} value={period} onChange={setPeriod} />
            </div>
          </>
        )}
        <Field
          label={t.limitInUsDollars}
          value={text}
          inputMode="decimal"
          autoComplete="off"
          aria-invalid={text !== '' && limit === null}
          onChange={(event) => setText(event.target.value)}
          hint={text !== '' && limit === null ? t.enterAnAmountAbove0SuchAs : t.periodsBeginAtMidnightUtcCallsIn}
        />
        <ProblemText error={save.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button type="submit" look="primary" isBusy={save.isPending} disabled={limit === null || subject === undefined}>
            {budget ? t.save : t.createBudget}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
