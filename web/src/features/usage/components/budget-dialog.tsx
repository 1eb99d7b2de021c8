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
import styles from './budgets.module.css'

// The budget of a user is created with the API or the CLI: no page lists users.
const scopes = [
  { value: 'workspace', label: 'Workspace', hint: 'All runs' },
  { value: 'agent', label: 'Agent', hint: 'The runs of one agent' },
  { value: 'room', label: 'Room', hint: 'The runs in one room' },
] as const
type Scope = (typeof scopes)[number]['value']

const periods = [
  { value: 'day', label: 'Day' },
  { value: 'week', label: 'Week', hint: 'From Monday' },
  { value: 'month', label: 'Month' },
  { value: 'total', label: 'Total', hint: 'Does not reset' },
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
    <Dialog title={budget ? 'Change budget' : 'New budget'} onClose={onClose}>
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
              <span aria-hidden>What it limits</span>
              <Segmented label="What it limits" choices={scopes} value={scope} onChange={setScope} />
            </div>
            {scope !== 'workspace' && (
              <Select
                label={scope === 'agent' ? 'Agent' : 'Room'}
                value={subject ?? ''}
                options={subjects.map(({ id, name }) => ({ value: id, label: name }))}
                onChange={setChosen}
              />
            )}
            <div className={styles.choice}>
              <span aria-hidden>Period</span>
              <Segmented label="Period" choices={periods} value={period} onChange={setPeriod} />
            </div>
          </>
        )}
        <Field
          label="Limit in US dollars"
          value={text}
          inputMode="decimal"
          autoComplete="off"
          aria-invalid={text !== '' && limit === null}
          onChange={(event) => setText(event.target.value)}
          hint={text !== '' && limit === null ? 'Enter an amount above 0, such as 25.' : 'Periods begin at midnight UTC. Calls in progress can pass the limit by what they cost.'}
        />
        <ProblemText error={save.error} />
        <div className={dialogs.actions}>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" look="primary" isBusy={save.isPending} disabled={limit === null || subject === undefined}>
            {budget ? 'Save' : 'Create budget'}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
