import { Pencil, Trash2 } from 'lucide-react'
import type { ReactNode } from 'react'
import { IconButton } from '@/components/ui/button'
import type { Budget } from '@/lib/api/types'
import { isUsedUp, periodWords, resetText } from '@/lib/budget'
import { dollars, fullTime } from '@/lib/format'
import { type BudgetNames, shareSpent, subjectOf } from '../model/budget-list'
import { t } from '../texts'
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
  const spent = t.of(dollars(spent_usd), dollars(limit_usd))
  return (
    <li className={styles.row} data-used-up={isUsedUp(budget) || undefined}>
      <div className={styles.subject}>
        <strong dir="auto">{subject}</strong>
        <span>{`${dollars(limit_usd)} ${periodWords[period]}`}</span>
      </div>
      <div className={styles.spent}>
        <progress aria-label={t.spent(subject, spent)} max={1} value={shareSpent(budget)} />
        <span>
          {spent} {t.spentWord}{isUsedUp(budget) && t.usedUp}
          {' · '}
          <span title={resets_at ? fullTime(resets_at) : undefined}>{resetText(resets_at)}</span>
        </span>
      </div>
      <div className={styles.actions}>
        <IconButton label={t.changeTheBudgetOf(subject)} onClick={onChange}>
          <Pencil size={15} aria-hidden />
        </IconButton>
        <IconButton label={t.deleteTheBudgetOf(subject)} onClick={onDelete}>
          <Trash2 size={15} aria-hidden />
        </IconButton>
      </div>
    </li>
  )
}
