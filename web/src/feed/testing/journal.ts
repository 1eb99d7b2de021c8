import type { History, Run } from '@/lib/api/types'
import type { RoomEvent } from '../event'
import journal from '../fixtures/journal.json'
import { foldRoom } from '../fold-room'
import { textOf } from '../message-text'
import { type Message, type RoomState, type RunState, emptyRoom } from '../state'

/** What one event changes, as the server's own fold has it. */
interface FoldChange {
  /** The whole message after the event, if the event changed one. */
  message?: History['messages'][number]
  /** What the run has used so far, if the event reported usage. */
  spent?: Pick<Run, 'usage' | 'cost' | 'model'>
}

// Written by the Rust test `web_contract::fold_fixture`: every event type, with the fold of `crates/domain/src/fold.rs`.
export const roomId = journal.room
export const epoch = journal.epoch
export const steps = journal.steps as unknown as readonly { event: RoomEvent; change: FoldChange }[]
export const events = steps.map((step) => step.event)
/** The runs after the last event. */
export const runs = journal.runs as unknown as readonly Run[]

/** The plain fold that everything else is measured by: each event once, in order. */
export function plainFold(upTo: number = events.length): RoomState {
  return foldRoom(emptyRoom(roomId, epoch), events.slice(0, upTo))
}

/** What a server would answer whose journal ends at `head`. */
export function historyAt(head: number, limit: number, before = Number.POSITIVE_INFINITY, since = 0): History {
  const { messages, order } = plainFold(head)
  const fitting = order.map((id) => messages.get(id) as Message).filter(({ seq }) => seq < before && seq > since)
  return { epoch, head, messages: fitting.slice(-limit).map(toStored), has_more: fitting.length > limit }
}

export function runsAt(head: number): Run[] {
  return [...plainFold(head).runs.values()].map(toStoredRun).toReversed()
}

function toStored(message: Message): History['messages'][number] {
  return {
    id: message.id,
    room_id: roomId,
    seq: message.seq,
    author: message.author.kind === 'agent' ? { ...message.author, name: 'agent' } : message.author,
    run_id: message.runId,
    status: message.status,
    text: textOf(message),
    thinking: textOf(message, 'thinking'),
    parts: message.parts.map((part) => {
      if (part.type !== 'tool') return { ...part }
      const { startedAt: _, endedAt: __, ...stored } = part
      return stored
    }),
    attachments: [...message.attachments],
    created_at: message.createdAt,
  }
}

function toStoredRun(run: RunState): Run {
  const isOver = run.endedAt !== null
  return {
    id: run.id,
    room_id: roomId,
    agent_id: run.agentId ?? '',
    message_id: run.messageId ?? '',
    status: run.status,
    queued_seq: run.queuedSeq ?? 0,
    // As the server does: what was used is written when the run ends.
    usage: isOver ? run.usage : { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
    cost: isOver ? run.cost : null,
    model: run.model,
    duration_ms: run.durationMs,
    error: run.error,
    receipt: run.receipt,
    created_at: '',
    started_at: run.startedAt,
    ended_at: run.endedAt,
  }
}
