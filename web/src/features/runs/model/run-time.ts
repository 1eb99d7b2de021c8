import type { Run } from '@/lib/api/types'

/** How long it took, or has taken so far; nothing for one that never began. */
export function millisOf(run: Pick<Run, 'duration_ms' | 'started_at' | 'ended_at'>, now: number): number | null {
  if (run.duration_ms !== null && run.duration_ms !== undefined) return run.duration_ms
  if (!run.started_at) return null
  const end = run.ended_at ? new Date(run.ended_at).getTime() : now
  return Math.max(0, end - new Date(run.started_at).getTime())
}
