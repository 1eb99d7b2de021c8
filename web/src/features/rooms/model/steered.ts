import type { RoomState } from '@/feed/state'

const cache = new WeakMap<RoomState['runs'], ReadonlySet<string>>()

/** The messages that were added to an answer while it ran. */
export function steeredIn(runs: RoomState['runs']): ReadonlySet<string> {
  const known = cache.get(runs)
  if (known) return known
  const found = new Set([...runs.values()].flatMap((run) => run.steered))
  cache.set(runs, found)
  return found
}
