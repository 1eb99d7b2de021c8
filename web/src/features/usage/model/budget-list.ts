import type { Budget } from '@/lib/api/types'
import { dollars } from '@/lib/format'
import { t } from '../texts'

export interface BudgetNames {
  agents: readonly { id: string; name: string }[]
  rooms: readonly { id: string; name: string }[]
}

const scopeWords: Record<Budget['scope'], string> = { get workspace() { return t.workspace }, get user() { return t.user }, get agent() { return t.agent }, get room() { return t.room } }

/** What a budget counts, by name: `Agent Reviewer`. */
export function subjectOf({ scope, subject_id }: Pick<Budget, 'scope' | 'subject_id'>, names: BudgetNames): string {
  if (scope === 'workspace') return t.wholeWorkspace
  const list = scope === 'agent' ? names.agents : scope === 'room' ? names.rooms : []
  const name = list.find(({ id }) => id === subject_id)?.name
  if (name) return `${scopeWords[scope]} ${name}`
  return scope === 'user' ? t.oneUser : t.deleted(scope)
}

/** From 0 to 1. A budget can be passed by the calls that were in progress. */
export function shareSpent({ spent_usd, limit_usd }: Pick<Budget, 'spent_usd' | 'limit_usd'>): number {
  return limit_usd > 0 ? Math.min(1, spent_usd / limit_usd) : 1
}

/** The limit in dollars, or `null` while the text is not one. */
export function readLimit(text: string): number | null {
  const value = Number(text.trim().replace(/^\$/, '').replace(',', '.'))
  return text.trim() !== '' && Number.isFinite(value) && value > 0 && value <= 1e9 ? value : null
}

/** A line in the chart of costs by day. */
export interface LimitLine {
  label: string
  /** In dollars for each day. */
  value: number
}

/**
 * The budgets of the workspace as lines for a chart by day. A budget for a week or a month has no limit for one day: its
 * line is the even pace at which it is used up exactly at its end.
 */
export function limitLines(budgets: readonly Budget[], now: Date): LimitLine[] {
  const daysInMonth = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 0)).getUTCDate()
  const days = { day: 1, week: 7, month: daysInMonth }
  return budgets.flatMap(({ scope, period, limit_usd }) => {
    if (scope !== 'workspace' || period === 'total') return []
    const value = limit_usd / days[period]
    const label = period === 'day' ? t.dailyLimit(dollars(limit_usd)) : t.evenPaceForA(dollars(limit_usd), period)
    return [{ label, value }]
  })
}
