import { Pencil, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import type { Budget } from '@/lib/api/types'
import { isUsedUp, periodWords, resetText } from '@/lib/budget'
import { dollars, fullTime } from '@/lib/format'
import { type BudgetNames, shareSpent, subjectOf } from '../model/budget-list'
import styles from './budgets.module.css'

interface BudgetRowProps {
  budget: Budget
  names: BudgetNames
  onChange: () => void
  onDelete: () => void
}

export function BudgetRow({ budget, names, onChange, onDelete }: BudgetRowProps): ReactNode {
  const subject = subjectOf(budget, names)
  const { spent_usd, limit_usd, period, resets_at } = budget
  const spent = `${dollars(spent_usd)} of ${dollars(limit_usd)}`
  return (
    <li className={styles.row} data-used-up={isUsedUp(budget) || undefined}>
      <div className={styles.subject}>
        <strong dir="auto">{subject}</strong>
        <span>{`${dollars(limit_usd)} ${periodWords[period]}`}</span>
      </div>
      <div className={styles.spent}>
        <progress aria-label={`${subject}: ${spent} spent`} max={1} value={shareSpent(budget)} />
        <span>
          {spent} spent{isUsedUp(budget) && ', used up'}
          {' · '}
          <span title={resets_at ? fullTime(resets_at) : undefined}>{resetText(resets_at)}</span>
        </span>
      </div>
      <div className={styles.actions}>
        <IconButton label={`Change the budget of ${subject}`} onClick={onChange}>
          <Pencil size={15} aria-hidden />
        </IconButton>
        <IconButton label={`Delete the budget of ${subject}`} onClick={onDelete}>
          <Trash2 size={15} aria-hidden />
        </IconButton>
      </div>
    </li>
  )
}
