import { type Pending, type RoomState, type RunState, hasEnded } from './state'

export type Row =
  | { kind: 'message'; key: string; id: string }
  /** Answers to one message that were written at the same time. */
  | { kind: 'together'; key: string; ids: readonly string[] }
  | { kind: 'run'; key: string; id: string }
  | { kind: 'pending'; key: string; pending: Pending }
  /** Where messages were skipped. */
  | { kind: 'skipped'; key: string }

type Source = Pick<RoomState, 'order' | 'messages' | 'runs' | 'pending' | 'loadedFrom' | 'skipped'>

/**
 * A conversation from top to bottom. A run that has not begun to speak stands at the end, where its answer will be; one
 * that ended without a word stands behind the message that it would have answered.
 */
export function rowsOf(source: Source): Row[] {
  const silent = [...source.runs.values()].filter((run) => run.streamId === null && run.queuedSeq !== null)
  const { skipped, loadedFrom } = source
  const isLoaded = (seq: number): boolean => seq >= loadedFrom && !(skipped && seq > skipped.after && seq < skipped.before)
  const ended = silent.filter((run) => hasEnded(run) && isLoaded(run.queuedSeq ?? 0)).sort(byQueue)
  const rows: Row[] = []
  let next = 0
  let isAbove = skipped !== null
  for (const id of source.order) {
    const seq = source.messages.get(id)?.seq ?? 0
    if (isAbove && seq >= (skipped?.before ?? 0)) {
      rows.push({ kind: 'skipped', key: 'skipped' })
      isAbove = false
    }
    for (let run = ended[next]; run && (run.queuedSeq ?? 0) < seq; run = ended[++next]) rows.push(runRow(run))
    const last = rows.at(-1)
    const beside = last?.kind === 'message' ? [last.id] : last?.kind === 'together' ? last.ids : []
    if (beside.some((other) => overlap(source, other, id))) rows.splice(-1, 1, { kind: 'together', key: beside[0] ?? id, ids: [...beside, id] })
    else rows.push({ kind: 'message', key: id, id })
  }
  for (const run of ended.slice(next)) rows.push(runRow(run))
  for (const pending of source.pending) {
    const isShown = pending.messageId !== null && source.messages.has(pending.messageId)
    if (!isShown) rows.push({ kind: 'pending', key: pending.key, pending })
  }
  for (const run of silent.filter((one) => !hasEnded(one)).sort(byQueue)) rows.push(runRow(run))
  return rows
}

/** Whether an answer began while an earlier one to the same message was still written. */
function overlap({ messages, runs }: Source, earlier: string, later: string): boolean {
  const [one, other] = [messages.get(earlier), messages.get(later)]
  const [first, second] = [runs.get(one?.runId ?? ''), runs.get(other?.runId ?? '')]
  if (!other || !first || !second || first.messageId === null || first.messageId !== second.messageId) return false
  return hasEnded(first) ? first.endedAt !== null && other.createdAt < first.endedAt : true
}

function runRow(run: RunState): Row {
  return { kind: 'run', key: run.id, id: run.id }
}

function byQueue(a: RunState, b: RunState): number {
  return (a.queuedSeq ?? 0) - (b.queuedSeq ?? 0)
}

/** The active and queued runs of a room, in order. */
export function unfinished(runs: RoomState['runs']): RunState[] {
  return [...runs.values()].filter((run) => !hasEnded(run)).sort(byQueue)
}

/** How many messages wait for the runs before them. */
export function queuedMessages(state: RoomState | null): number {
  const queued = state ? unfinished(state.runs).filter((run) => run.status === 'queued') : []
  return new Set(queued.map((run) => run.messageId)).size
}
