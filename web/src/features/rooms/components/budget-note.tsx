import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { hasEnded } from '@/feed/state'
import { useRoom } from '@/feed/use-feed'
import { billingQuery } from '@/lib/api/queries'
import type { Room } from '@/lib/api/types'
import { resetText, stoppingBudget } from '@/lib/budget'
import { dollars } from '@/lib/format'
import { useAgents } from '../model/use-agents'
import { t } from '../texts'
import styles from './composer.module.css'

/** Says that messages in this room are refused because a budget is used up. */
export function BudgetNote({ room }: { room: Room }): ReactNode {
  const queries = useQueryClient()
  const agents = useAgents()
  const { data: billing } = useQuery({ ...billingQuery, refetchInterval: (query) => (query.state.data?.budgets.length ? 60_000 : false) })
  const hasBudgets = (billing?.budgets.length ?? 0) > 0

  const ended = useRoom(room.id, (view) => (view.state ? [...view.state.runs.values()].filter(hasEnded).length : 0))

  // A run that has just ended may have spent the rest.
  useEffect(() => {
    if (ended > 0 && hasBudgets) void queries.invalidateQueries(billingQuery)
  }, [queries, ended, hasBudgets])

  const budget = stoppingBudget(billing?.budgets ?? [], room)
  if (!budget) return null
  const agent = agents.find(({ id }) => id === budget.subject_id)?.name ?? t.anAgent
  const whose = { workspace: t.theWorkspacesBudget, user: t.yourBudget, room: t.thisRoomsBudget, agent: t.theBudgetOf(agent) }[budget.scope]
  return (
    <p className={styles.note} role="status">
      {t.budgetIsUsedUp(whose, dollars(budget.spent_usd), dollars(budget.limit_usd), resetText(budget.resets_at))}{' '}
      <Link to="/usage" hash="budgets">
        {t.budgets}
      </Link>
    </p>
  )
}
