import type { components } from '@/lib/api/schema'
import type { Run } from '@/lib/api/types'

export type Series = components['schemas']['Series']

export interface AgentFigures {
  /** Null where the server does not tell. */
  usage: {
    runs: number
    /** Only runs that ended on their own: runs stopped by a person do not count. */
    successRate: number | null
    cost: number | null
    /** Runs whose price is not known, and so not in the cost. */
    unpriced: number
  } | null
  lastUsed: { at: string; isDay: boolean } | null
}

const unused = { runs: 0, completed: 0, failed: 0, cost: null, unpriced: 0 }

export function figuresOf(agentId: string, series: readonly Series[] | null, runs: readonly Run[]): AgentFigures {
  const own = series?.find(({ key }) => key === agentId)
  const newest = runs.reduce<string | null>((last, run) => (run.agent_id === agentId && run.created_at > (last ?? '') ? run.created_at : last), null)
  // Runs are listed to a limit; beyond it only the day is known.
  const lastDay = own?.points.findLast((point) => point.runs > 0)?.at
  const lastUsed = newest ? { at: newest, isDay: false } : lastDay ? { at: lastDay, isDay: true } : null
  if (!series) return { usage: null, lastUsed }
  const { runs: count, completed, failed, cost = null, unpriced } = own?.total ?? unused
  const successRate = completed + failed > 0 ? completed / (completed + failed) : null
  return { usage: { runs: count, successRate, cost, unpriced }, lastUsed }
}
