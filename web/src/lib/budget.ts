import type { Budget, Room } from './api/types'
import { dollars, moment } from './format'
import { t } from './texts'

export const periodWords: Record<Budget['period'], string> = { get day() { return t.aDay }, get week() { return t.aWeek }, get month() { return t.aMonth }, get total() { return t.inTotal } }

export function isUsedUp({ spent_usd, limit_usd }: Pick<Budget, 'spent_usd' | 'limit_usd'>): boolean {
  return spent_usd >= limit_usd
}

/** When a budget starts again, in the reader's time. */
export function resetText(resetsAt: string | null | undefined, now: Date = new Date()): string {
  return resetsAt ? t.resets(moment(resetsAt, now)) : t.doesNotReset
}

/** The fields of a `budget_exceeded` problem. The API's document lists only those that all problems have. */
interface BudgetProblem {
  limit?: number
  spent?: number
  resets_at?: string | null
  detail?: string
}

/** Why a message was refused, with the time at which it can be sent. */
export function budgetSentence(problem: object, now: Date = new Date()): string {
  const { limit, spent, resets_at, detail } = problem as BudgetProblem
  if (limit === undefined || spent === undefined) return detail ?? t.aBudgetIsUsedUp
  return t.theBudgetIsUsedUpOfSpent(dollars(spent), dollars(limit), resetText(resets_at, now))
}

/**
 * The budget for which messages in a room are refused, if there is one. The budget of a user is not among these: a page
 * does not know its user's id.
 */
export function stoppingBudget(budgets: readonly Budget[], room: Pick<Room, 'id' | 'agents'>): Budget | null {
  const spent = budgets.filter(isUsedUp)
  const whole = spent.find(({ scope, subject_id }) => scope === 'workspace' || (scope === 'room' && subject_id === room.id))
  if (whole) return whole
  const ofAgent = (id: string): Budget | undefined => spent.find(({ scope, subject_id }) => scope === 'agent' && subject_id === id)
  return room.agents.map(ofAgent).find((budget) => budget !== undefined) ?? null
}
