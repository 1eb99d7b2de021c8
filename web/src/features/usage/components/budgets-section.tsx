import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { Button } from '@/components/ui/button'
import { ProblemNote } from '@/components/ui/problem-note'
import { Section } from '@/components/ui/section'
import { agentsQuery, billingQuery, roomsQuery } from '@/lib/api/queries'
import type { Budget } from '@/lib/api/types'
import { BudgetDialog } from './budget-dialog'
import { BudgetRow } from './budget-row'
import styles from './budgets.module.css'
import { DeleteBudgetDialog } from './delete-budget-dialog'
import { t } from '../texts'

type Open = { dialog: 'new' } | { dialog: 'change' | 'delete'; budget: Budget }

/** What runs may cost, and how much of it is spent. */
export function BudgetsSection(): ReactNode {
  const { data: billing, error, refetch } = useQuery({ ...billingQuery, refetchInterval: 60_000 })
  const names = { agents: useQuery(agentsQuery).data ?? [], rooms: useQuery(roomsQuery).data ?? [] }
  const [open, setOpen] = useState<Open | null>(null)
  const close = (): void => setOpen(null)
  return (
    <div id="budgets" className={styles.budgets}>
      <Section
        isCompact
        title={t.budgets}
        lead={t.limitWhatRunsMayCostABudget}
        action={
          <Button onClick={() => setOpen({ dialog: 'new' })}>
            <Plus size={15} aria-hidden />
            {t.newBudget}
          </Button>
        }
      >
        {error && <ProblemNote title={t.couldNotLoadBudgets} error={error} onRetry={() => void refetch()} />}
        {billing && billing.budgets.length === 0 && <p className={styles.none}>{t.noBudgetsCostsAreNotLimited}</p>}
        {billing && billing.budgets.length > 0 && (
          <ul className={styles.list}>
            {billing.budgets.map((budget) => (
              <BudgetRow
                key={budget.id}
                budget={budget}
                names={names}
                onChange={() => setOpen({ dialog: 'change', budget })}
                onDelete={() => setOpen({ dialog: 'delete', budget })}
              />
            ))}
          </ul>
        )}
      </Section>
      {open?.dialog === 'new' && <BudgetDialog names={names} onClose={close} />}
      {open?.dialog === 'change' && <BudgetDialog budget={open.budget} names={names} onClose={close} />}
      {open?.dialog === 'delete' && <DeleteBudgetDialog budget={open.budget} names={names} onClose={close} />}
    </div>
  )
}
