import type { Examination } from '@/lib/api/types'

type Check = Examination['checks'][number]

/** `missing`: a provider that is not set up. Nobody needs all of them, so that is no warning. */
export type CheckLevel = Check['status'] | 'missing'
export type ShownCheck = Omit<Check, 'status'> & { level: CheckLevel }

const rank: Record<CheckLevel, number> = { fail: 0, warn: 1, ok: 2, missing: 3 }

/** What needs someone comes first; else the server's own order. */
export function worstFirst(checks: readonly Check[], providers: readonly string[]): ShownCheck[] {
  const shown = checks.map(({ status, ...check }): ShownCheck => ({ ...check, level: status === 'warn' && providers.includes(check.name) ? 'missing' : status }))
  return shown.toSorted((a, b) => rank[a.level] - rank[b.level])
}
