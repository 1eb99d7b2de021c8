import type { Attachment, Author, Receipt, RunError, Usage, WhenBusy } from '@/lib/api/types'

/** The data of each event type that the reducer knows. Others are passed over: a newer server may send them. */
export interface EventData {
  message_posted: {
    message_id: string
    author: Author
    text: string
    when_busy: WhenBusy
    mentions?: string[]
    attachments?: Attachment[]
  }
  run_queued: { message_id: string }
  run_started: { provider: string; model: string | null }
  status: { status: string; message: string }
  stream_start: { stream_id: string }
  content_delta: Delta
  thinking_delta: Delta
  retract: { stream_id: string; item: string }
  tool_use: { stream_id: string; tool_use_id: string; name: string; input: unknown }
  tool_output_delta: { stream_id: string; tool_use_id: string; delta: string }
  tool_result: { stream_id: string; tool_use_id: string; content: unknown; is_error: boolean }
  approval_requested: {
    approval_id: string
    tool_use_id?: string | null
    name: string
    input: unknown
    expires_at: string
    is_question?: boolean
  }
  approval_resolved: { approval_id: string; decision: Decision; input?: unknown; remember?: boolean }
  usage: { usage: Usage; cost: number | null; model: string | null }
  stream_end: { stream_id: string; skipped: boolean }
  run_completed: End
  run_failed: End & { error: RunError }
  run_cancelled: End & { receipt: Receipt }
  run_interrupted: End & { receipt: Receipt; reason: string }
  participant_joined: { agent_id: string; name: string }
}

interface Delta {
  stream_id: string
  delta: string
  item?: string | null
}

interface End {
  usage: Usage
  cost: number | null
  duration_ms: number
}

export type Decision = 'allow' | 'deny' | 'expired'
export type KnownType = keyof EventData

interface Envelope {
  id: string
  room_id: string
  seq: number
  run_id?: string | null
  agent_id?: string | null
  created_at: string
  raw?: unknown
}

export type KnownEvent = { [T in KnownType]: Envelope & { type: T; data: EventData[T] } }[KnownType]
/** An event from the wire; its type may be unknown to this page. */
export type RoomEvent = Envelope & { type: string; data: unknown }
