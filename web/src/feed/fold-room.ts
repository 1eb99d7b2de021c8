// The reducer of a room: it folds events into messages and runs. The parts of a run fold in fold-run and fold-parts.
import type { KnownEvent, RoomEvent } from './event'
import { foldParts } from './fold-parts'
import { foldRun } from './fold-run'
import { saysSame } from './pending'
import { type Message, type Pending, type RoomState, newRun, partOf, speakerOf } from './state'

/** The last event of a run is one of these. */
const ends: ReadonlySet<string> = new Set(['run_completed', 'run_failed', 'run_cancelled', 'run_interrupted'])

/** How many events may wait for the ones before them; beyond this a page is read anyway. */
const mostEarly = 10_000

/**
 * The state after these events. They may come twice, out of order or with holes: what is old is passed over, what is
 * early waits, and only what follows directly is folded in.
 */
export function foldRoom(state: RoomState, events: readonly RoomEvent[]): RoomState {
  const draft = new Draft(state)
  for (const event of events) draft.take(event)
  return draft.state()
}

export function hasGap(state: RoomState): boolean {
  return state.early.size > 0
}

/** One batch: each map is copied at most once however many events it holds. */
class Draft {
  private next: RoomState
  private messages: Map<string, Message> | null = null
  private runs: Map<string, ReturnType<typeof newRun>> | null = null
  private early: Map<number, RoomEvent> | null = null

  constructor(before: RoomState) {
    this.next = before
  }

  state(): RoomState {
    const { messages = null, runs = null, early = null } = this
    if (messages) this.next = { ...this.next, messages }
    if (runs) this.next = { ...this.next, runs }
    if (early) this.next = { ...this.next, early }
    return this.next
  }

  take(event: RoomEvent): void {
    if (event.seq <= this.next.seq) return
    this.next = { ...this.next, head: Math.max(this.next.head, event.seq) }
    if (event.seq > this.next.seq + 1) {
      this.early ??= new Map(this.next.early)
      if (this.early.size < mostEarly) this.early.set(event.seq, event)
      return
    }
    this.apply(event)
    this.takeEarly()
  }

  private takeEarly(): void {
    const waiting = this.early ?? this.next.early
    if (waiting.size === 0) return
    const early = (this.early ??= new Map(waiting))
    for (let event = early.get(this.next.seq + 1); event; event = early.get(this.next.seq + 1)) {
      this.apply(event)
    }
    for (const seq of early.keys()) if (seq <= this.next.seq) early.delete(seq)
  }

  private apply(event: RoomEvent): void {
    this.next = { ...this.next, seq: event.seq }
    const known = event as KnownEvent
    switch (known.type) {
      case 'message_posted':
        return this.posted(known)
      case 'message_copied':
        return this.copied(known)
      case 'participant_joined':
        return this.name(known.data.agent_id, known.data.name)
      default:
        if (known.run_id) this.ofRun(known, known.run_id)
    }
  }

  private posted(event: Extract<KnownEvent, { type: 'message_posted' }>): void {
    const { message_id, author, text, attachments = [] } = event.data
    const parts = [{ type: 'text' as const, text }]
    const { seq, created_at: createdAt } = event
    this.put({ id: message_id, seq, author: speakerOf(author), runId: null, status: 'complete', parts, attachments, createdAt })
    this.next = { ...this.next, pending: settle(this.next.pending, message_id, { text, attachments }) }
  }

  private copied(event: Extract<KnownEvent, { type: 'message_copied' }>): void {
    const { message_id, author, status, parts, attachments = [], written_at: createdAt } = event.data
    if (author.kind === 'agent') this.name(author.id, author.name)
    this.put({ id: message_id, seq: event.seq, author: speakerOf(author), runId: null, status, parts: parts.map(partOf), attachments, createdAt })
  }

  private name(agentId: string, name: string): void {
    this.next = { ...this.next, names: new Map(this.next.names).set(agentId, name) }
  }

  private ofRun(event: KnownEvent, runId: string): void {
    const before = (this.runs ?? this.next.runs).get(runId) ?? { ...newRun(runId), agentId: event.agent_id ?? null }
    const parts = before.streamId === null ? 0 : (this.message(before.streamId)?.parts.length ?? 0)
    const run = foldRun(before, event, parts)
    if (run !== before) {
      this.runs ??= new Map(this.next.runs)
      this.runs.set(runId, run)
    }
    if (event.type === 'stream_start') return this.begin(event, runId)
    const message = run.streamId === null ? undefined : this.message(run.streamId)
    if (!message || message.status !== 'streaming') return
    const folded = foldParts(message.parts, event)
    if (ends.has(event.type)) this.put({ ...message, status: event.type === 'run_completed' ? 'complete' : 'partial' })
    else if (folded !== message.parts) this.put({ ...message, parts: folded })
  }

  private begin(event: Extract<KnownEvent, { type: 'stream_start' }>, runId: string): void {
    const id = event.data.stream_id
    if (this.message(id)) return
    const author = { kind: 'agent' as const, id: event.agent_id ?? '' }
    const { seq, created_at: createdAt } = event
    this.put({ id, seq, author, runId, status: 'streaming', parts: [], attachments: [], createdAt })
  }

  private message(id: string): Message | undefined {
    return (this.messages ?? this.next.messages).get(id)
  }

  private put(message: Message): void {
    this.messages ??= new Map(this.next.messages)
    const isNew = !this.messages.has(message.id)
    this.messages.set(message.id, message)
    // What is folded in here begins after everything there was: the end of the order is its place.
    if (isNew) this.next = { ...this.next, order: [...this.next.order, message.id] }
  }
}

/**
 * A message that the journal shows is no longer pending. Its event may overtake the answer to the request that sent
 * it; then the first one that says the same is taken for it, until that answer says which it really was.
 */
function settle(pending: readonly Pending[], messageId: string, said: Pick<Pending, 'text' | 'attachments'>): readonly Pending[] {
  if (pending.some((one) => one.messageId === messageId && one.confirmed)) {
    return pending.filter((one) => one.messageId !== messageId)
  }
  const index = pending.findIndex((one) => one.messageId === null && saysSame(one, said) && one.state !== 'refused')
  const guessed = pending[index]
  return guessed ? pending.with(index, { ...guessed, messageId }) : pending
}
