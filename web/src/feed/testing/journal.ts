import type { History, Run } from '@/lib/api/types'
import type { RoomEvent } from '../event'
import journal from '../fixtures/journal.json'
import { reduce } from '../reduce'
import { type Message, type RoomState, type RunState, emptyRoom, textOf } from '../state'

/** Recorded from a real server: all events of one room, with snapshots of history and runs in between. */
export const roomId = journal.room
export const epoch = journal.events.epoch
export const events = journal.events.events as RoomEvent[]
export const snapshots = journal.snapshots as unknown as { history: History; runs: Run[] }[]

/** The plain fold that everything else is measured by: each event once, in order. */
export function plainFold(upTo: number = events.length): RoomState {
  return reduce(emptyRoom(roomId, epoch), events.slice(0, upTo))
}

/** What a server would answer whose journal ends at `head`. */
export function historyAt(head: number, limit: number, before = Number.POSITIVE_INFINITY): History {
  const { messages, order } = plainFold(head)
  const fitting = order.map((id) => messages.get(id) as Message).filter((message) => message.seq < before)
  return { epoch, head, messages: fitting.slice(-limit).map(toStored) }
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
