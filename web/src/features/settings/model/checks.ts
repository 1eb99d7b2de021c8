import type { Examination } from '@/lib/api/types'

export type Check = Examination['checks'][number]

const rank: Record<Check['status'], number> = { fail: 0, warn: 1, ok: 2 }

/** What needs someone comes first; else the server's own order. */
export function worstFirst(checks: readonly Check[]): Check[] {
  return checks.toSorted((a, b) => rank[a.status] - rank[b.status])
}
