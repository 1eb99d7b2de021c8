import type { History, Run, Message as StoredMessage } from '@/lib/api/types'
import type { RoomEvent } from './event'
import { foldRoom } from './fold-room'
import { type Message, type RoomState, type RunState, emptyRoom, hasEnded, newRun, partOf, speakerOf } from './state'

/** A room as the server folded it, at exactly `head`. */
export function fromHistory(roomId: string, history: History): RoomState {
  const messages = new Map(history.messages.map((stored) => [stored.id, fromStored(stored)]))
  const runs = new Map<string, RunState>()
  const names = new Map<string, string>()
  for (const one of history.messages) {
    if (one.author.kind === 'agent') names.set(one.author.id, one.author.name)
    if (one.run_id) runs.set(one.run_id, guessRun(one.run_id, one))
  }
  const loadedFrom = history.has_more ? (history.messages[0]?.seq ?? 0) : 0
  const { epoch, head } = history
  return { ...emptyRoom(roomId, epoch), seq: head, head, messages, runs, names, order: inOrder(messages), loadedFrom }
}

/** The same room with an older page before it. Both must be folded to the same position, or the page hold nothing open. */
export function withOlder(state: RoomState, older: RoomState): RoomState {
  const messages = new Map(older.messages)
  // What began after the page was read is in it only by the events that brought it here.
  for (const [id, message] of older.messages) if (message.seq >= state.loadedFrom) messages.delete(id)
  for (const [id, message] of state.messages) messages.set(id, message)
  const runs = new Map(older.runs)
  for (const [id, run] of state.runs) runs.set(id, { ...run, streamId: run.streamId ?? older.runs.get(id)?.streamId ?? null })
  const names = new Map([...older.names, ...state.names])
  return { ...state, messages, runs, names, order: inOrder(messages), loadedFrom: older.loadedFrom }
}

/** The same room with a page that ends before `until`. If that is far above what is loaded, what lies between is skipped. */
export function withEarlier(state: RoomState, page: RoomState, until: number): RoomState {
  const joined = withOlder(state, page)
  return until >= state.loadedFrom ? joined : { ...joined, skipped: { after: until - 1, before: state.loadedFrom } }
}

/** The same room with the messages right after where it skipped some, up to `until`. */
export function withSkipped(state: RoomState, page: RoomState, until: number): RoomState {
  const { skipped } = state
  if (!skipped) return state
  const messages = new Map([...page.messages, ...state.messages])
  const runs = new Map([...page.runs, ...state.runs])
  const names = new Map([...page.names, ...state.names])
  const rest = until < skipped.before ? { after: until - 1, before: skipped.before } : null
  return { ...state, messages, runs, names, order: inOrder(messages), skipped: rest }
}

/** How many positions a page of messages takes, judged by the newest ones. */
export function spanOf({ order, messages, loadedFrom, skipped, head }: RoomState, pageSize: number): number {
  const from = skipped?.before ?? loadedFrom
  const newest = order.filter((id) => (messages.get(id)?.seq ?? 0) >= from).length
  return Math.max(pageSize, Math.ceil(((head - from) / Math.max(1, newest)) * pageSize))
}

export function isOpenEnded(state: RoomState): boolean {
  return [...state.messages.values()].some((message) => message.status === 'streaming')
}

function inOrder(messages: ReadonlyMap<string, Message>): string[] {
  return [...messages.values()].sort((a, b) => a.seq - b.seq).map((message) => message.id)
}

function fromStored(stored: StoredMessage): Message {
  return {
    id: stored.id,
    seq: stored.seq,
    author: speakerOf(stored.author),
    runId: stored.run_id ?? null,
    status: stored.status,
    parts: stored.parts.map(partOf),
    attachments: stored.attachments ?? [],
    createdAt: stored.created_at,
  }
}

/** What a message alone says about its run; how the run ended is known once the run is loaded. */
function guessRun(id: string, message: StoredMessage): RunState {
  const agentId = message.author.kind === 'agent' ? message.author.id : null
  const guess = { streaming: 'running', complete: 'completed', partial: 'interrupted' } as const
  return { ...newRun(id), agentId, streamId: message.id, status: guess[message.status] }
}

/** Runs as REST returns them, which may be newer than `seq`: an end is taken over, anything else only fills gaps. */
export function withRuns(state: RoomState, list: readonly Run[]): RoomState {
  const runs = new Map(state.runs)
  for (const fetched of list) {
    const known = runs.get(fetched.id) ?? newRun(fetched.id)
    // One that was queued after `seq` comes by its events, whole.
    if (!known.whole && fetched.queued_seq <= state.seq) runs.set(fetched.id, merge(known, fetched))
  }
  return { ...state, runs }
}

function merge(known: RunState, fetched: Run): RunState {
  const basics = {
    ...known,
    agentId: fetched.agent_id,
    messageId: fetched.message_id,
    queuedSeq: fetched.queued_seq,
    model: known.model ?? fetched.model ?? null,
    startedAt: known.startedAt ?? fetched.started_at ?? null,
  }
  if (!hasEnded(fetched)) return hasEnded(known) ? basics : { ...basics, status: fetched.status }
  return {
    ...basics,
    status: fetched.status,
    usage: fetched.usage,
    cost: fetched.cost ?? null,
    durationMs: fetched.duration_ms ?? null,
    error: fetched.error ?? null,
    receipt: fetched.receipt ?? null,
    endedAt: fetched.ended_at ?? null,
    activity: null,
  }
}

/**
 * One run folded again from its own events, which must reach from its first to at least `seq` or its end. This is how
 * approvals and times of tools, which history does not carry, come to a run that was loaded from it.
 */
export function withRunEvents(state: RoomState, runId: string, events: readonly RoomEvent[]): RoomState {
  const own = events.filter((event) => event.run_id === runId && event.seq <= state.seq)
  const first = own[0]
  if (first?.type !== 'run_queued') return state
  // Renumbered, because other runs' events lie between them.
  const numbered = own.map((event, index) => ({ ...event, seq: index + 1 }))
  const folded = foldRoom(emptyRoom(state.roomId, state.epoch), numbered)
  const run = folded.runs.get(runId)
  if (!run) return state
  const whole = { ...run, queuedSeq: first.seq }
  const runs = new Map(state.runs).set(runId, whole)
  const answer = run.streamId === null ? undefined : folded.messages.get(run.streamId)
  const began = own.find((event) => event.type === 'stream_start')?.seq ?? 0
  if (!answer || began < state.loadedFrom) return { ...state, runs }
  const messages = new Map(state.messages).set(answer.id, { ...answer, seq: began })
  return { ...state, runs, messages, order: inOrder(messages) }
}
