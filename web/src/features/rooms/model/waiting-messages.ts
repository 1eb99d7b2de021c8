import type { Tape } from '@/lib/api/types'

/** A message of which no answer has started. */
export interface WaitingMessage {
  id: string
  /** Its queued runs. */
  runs: string[]
  /** What is only planned for it. */
  cells: string[]
}

/** The waiting messages of a room, in the order in which they are answered. */
export function waitingMessages(cells: Tape['cells']): WaitingMessage[] {
  const started = new Set(cells.filter(({ status }) => status === 'running').map(({ message_id }) => message_id))
  const waiting = new Map<string, WaitingMessage>()
  for (const { id, message_id, status, runs = [] } of cells) {
    if (started.has(message_id)) continue
    const message = waiting.get(message_id) ?? { id: message_id, runs: [], cells: [] }
    message.runs.push(...runs.map((run) => run.id))
    if (status === 'planned') message.cells.push(id)
    waiting.set(message_id, message)
  }
  return [...waiting.values()]
}

/** How many unfinished runs are before a run; -1 if it is not among them. */
export function placeOf(cells: Tape['cells'], runId: string): number {
  return cells.flatMap(({ runs = [] }) => runs).findIndex((run) => run.id === runId)
}
