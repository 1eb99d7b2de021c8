import type { NamedRun, RunStatus } from '@/lib/api/types'

export const statuses: readonly RunStatus[] = [
  'queued',
  'running',
  'waiting_for_approval',
  'waiting_for_quota',
  'completed',
  'failed',
  'cancelled',
  'interrupted',
]

const ends: ReadonlySet<RunStatus> = new Set(['completed', 'failed', 'cancelled', 'interrupted'])

export function isEnded(status: RunStatus): boolean {
  return ends.has(status)
}

const hour = 3_600_000
export const spans = { hour, day: 24 * hour, week: 7 * 24 * hour, month: 30 * 24 * hour }
export type Since = keyof typeof spans

/** What a list of runs is narrowed to, as it stands in the address. */
export interface RunFilter {
  status?: RunStatus
  agent?: string
  room?: string
  since?: Since
  /** Where an older page begins. */
  before?: string
}

/** From an address that anyone may have written: what makes no sense is left out. */
export function readFilter(search: Record<string, unknown>): RunFilter {
  const filter: RunFilter = {}
  const text = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value.slice(0, 200) : undefined)
  if (statuses.includes(search.status as RunStatus)) filter.status = search.status as RunStatus
  if (typeof search.since === 'string' && Object.hasOwn(spans, search.since)) filter.since = search.since as Since
  for (const key of ['agent', 'room', 'before'] as const) {
    const value = text(search[key])
    if (value !== undefined) filter[key] = value
  }
  return filter
}

/** Another filter begins at its newest page. */
export function withFilter(filter: RunFilter, changes: Partial<RunFilter>): RunFilter {
  const { before: _, ...rest } = filter
  return readFilter({ ...rest, ...changes })
}

export function isNarrowed(filter: RunFilter): boolean {
  return Object.keys(filter).some((key) => key !== 'before')
}

/** The newest come first, so what is too old is a tail; where it was cut off there is nothing older to show. */
export function newerThan<T extends Pick<NamedRun, 'created_at'>>(
  page: { runs: T[]; next?: string | null },
  since: Since | undefined,
  now: number,
): { runs: T[]; next: string | null } {
  const next = page.next ?? null
  if (since === undefined) return { runs: page.runs, next }
  const limit = now - spans[since]
  const runs = page.runs.filter((run) => new Date(run.created_at).getTime() >= limit)
  return { runs, next: runs.length < page.runs.length ? null : next }
}
