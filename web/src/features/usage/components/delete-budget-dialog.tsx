import { useMutation, useQueryClient } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { ConfirmDialog } from '@/components/ui/confirm-dialog'
import { billingQuery } from '@/lib/api/queries'
import type { Budget } from '@/lib/api/types'
import { periodWords } from '@/lib/budget'
import { dollars } from '@/lib/format'
import { deleteBudget } from '../api/budgets'
import { type BudgetNames, subjectOf } from '../model/budget-list'
import { t } from '../texts'

export function DeleteBudgetDialog({ budget, names, onClose }: { budget: Budget; names: BudgetNames; onClose: () => void }): ReactNode {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => deleteBudget(budget.id),
    onSuccess: async () => {
      await queries.invalidateQueries(billingQuery)
      onClose()
    },
  })
  return (
    <ConfirmDialog title={t.deleteThisBudget} keep={t.cancel} confirm={t.deleteBudget} isBusy={remove.isPending} error={remove.error} onConfirm={() => remove.mutate()} onClose={onClose}>
      <p>{t.withoutItOnlyTheOtherBudgetsLimit(subjectOf(budget, names), dollars(budget.limit_usd), periodWords[budget.period])}</p>
    </ConfirmDialog>
  )
}
