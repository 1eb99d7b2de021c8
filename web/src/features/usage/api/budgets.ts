import { answerOf, api, once } from '@/lib/api/client'
import type { Budget, NewBudget } from '@/lib/api/types'

export async function createBudget(budget: NewBudget): Promise<void> {
  await answerOf(api.POST('/api/budgets', { params: { header: once() }, body: budget }))
}

export async function deleteBudget(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/budgets/{id}', { params: { path: { id }, header: once() } }))
}

/** A budget cannot be edited. The new one is created first, so that there is a limit at all times. */
export async function changeLimit({ id, scope, subject_id, period }: Budget, limit: number): Promise<void> {
  await createBudget({ scope, id: subject_id, period, limit_usd: limit })
  await deleteBudget(id)
}
