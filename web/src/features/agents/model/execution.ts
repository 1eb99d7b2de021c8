import type { Receipt, Run, Usage } from '@/lib/api/types'
import type { SseEvent } from './sse'
import { t } from '../texts'

export interface ToolCall {
  id: string
  name: string
  input: unknown
  content: unknown
  state: 'running' | 'done' | 'failed'
}

export interface Approval {
  id: string
  name: string
  input: unknown
}

export interface Metrics {
  usage: Usage
  cost: number | null
  durationMs: number | null
}

export interface Ending {
  kind: 'completed' | 'failed' | 'stopped' | 'lost'
  text: string | null
}

/** One task as it is seen from outside: the words of `/api/execute`, folded. */
export interface Execution {
  runId: string | null
  roomId: string | null
  activity: string
  text: string
  thinking: string
  tools: readonly ToolCall[]
  /** Tool calls that wait for a yes or a no. */
  approvals: readonly Approval[]
  metrics: Metrics | null
  ending: Ending | null
}

export const begun: Execution = {
  runId: null,
  roomId: null,
  get activity() { return t.sending },
  text: '',
  thinking: '',
  tools: [],
  approvals: [],
  metrics: null,
  ending: null,
}

interface StreamData {
  status?: string
  message?: string | null
  run_id?: string
  room_id?: string
  approval_id?: string
  name?: string
  input?: unknown
  type?: string
  delta?: string
  id?: string
  content?: unknown
  is_error?: boolean
  text?: string
  usage?: Usage
  cost?: number | null
  duration_ms?: number | null
  code?: string
  receipt?: Receipt
}

export function fold(before: Execution, { event, data }: SseEvent): Execution {
  const received = parsed(data)
  if (!received || before.ending) return before
  switch (event) {
    case 'status':
      return withStatus(before, received)
    case 'message':
      return withMessage(before, received)
    case 'completion':
      return {
        ...ended(before, { kind: 'completed', text: null }),
        text: received.text ?? before.text,
        metrics: received.usage ? { usage: received.usage, cost: received.cost ?? null, durationMs: received.duration_ms ?? null } : null,
      }
    case 'error':
      // Only this stream is at its end then: the answer goes on in its room.
      if (received.code === 'server_stopping') return ended(before, { kind: 'lost', text: received.message ?? null })
      return ended(before, { kind: 'failed', text: received.message ?? received.code ?? t.itFailed })
    case 'cancelled':
      return { ...ended(before, { kind: 'stopped', text: received.status === 'interrupted' ? t.interrupted : t.stopped }), text: received.text ?? before.text }
    default:
      return before
  }
}

function withStatus(before: Execution, received: StreamData): Execution {
  switch (received.status) {
    case 'queued':
      return { ...before, runId: received.run_id ?? null, roomId: received.room_id ?? null, activity: t.waitsForItsTurn }
    case 'running':
      return { ...before, activity: t.works }
    case 'waiting_for_approval': {
      const approval = { id: received.approval_id ?? '', name: received.name ?? t.aTool, input: received.input }
      return { ...before, approvals: [...before.approvals, approval], activity: t.wantsToUse(approval.name) }
    }
    case 'retracted':
      // The whole answer comes at the end, without the words that were taken back.
      return before
    default:
      return { ...before, activity: received.message || received.status || before.activity }
  }
}

function withMessage(before: Execution, received: StreamData): Execution {
  switch (received.type) {
    case 'assistant':
      return { ...before, text: before.text + (received.delta ?? ''), approvals: [], activity: t.answers }
    case 'thinking':
      return { ...before, thinking: before.thinking + (received.delta ?? ''), approvals: [], activity: t.thinks }
    case 'tool_use': {
      const call: ToolCall = { id: received.id ?? '', name: received.name ?? t.toolWord, input: received.input, content: null, state: 'running' }
      return { ...before, tools: [...before.tools, call], activity: t.uses(call.name) }
    }
    case 'tool_result': {
      const finished = { content: received.content, state: received.is_error ? ('failed' as const) : ('done' as const) }
      const name = before.tools.find((call) => call.id === received.id)?.name
      const tools = before.tools.map((call) => (call.id === received.id ? { ...call, ...finished } : call))
      const answered = before.approvals.findIndex((approval) => approval.name === name)
      return { ...before, tools, approvals: before.approvals.filter((_, index) => index !== answered), activity: t.works }
    }
    default:
      return before
  }
}

/** The approval was answered here; later events show the result. */
export function withAnswered(before: Execution, approvalId: string): Execution {
  return { ...before, approvals: before.approvals.filter(({ id }) => id !== approvalId), activity: t.works }
}

export function ended(before: Execution, ending: Ending): Execution {
  return { ...before, ending, approvals: [], activity: '' }
}

/** The words of an ending that the stream did not contain come from the run's record. */
export function withRecord(before: Execution, run: Run): Execution {
  const metrics = { usage: run.usage, cost: run.cost ?? null, durationMs: run.duration_ms ?? null }
  if (before.ending?.kind !== 'lost' || !run.ended_at) return { ...before, metrics: before.metrics ?? metrics }
  const text = run.error?.message ?? endings[run.status] ?? t.itHasEnded
  const kind = run.status === 'completed' ? 'completed' : run.status === 'failed' ? 'failed' : 'stopped'
  return { ...before, metrics, ending: { kind, text } }
}

const endings: Partial<Record<Run['status'], string>> = {
  get completed() { return t.completedWhileTheConnectionWasDownThe },
  get cancelled() { return t.stoppedTheTextSoFarIsIn },
  get interrupted() { return t.interruptedTheTextSoFarIsIn },
}

function parsed(data: string): StreamData | null {
  try {
    const value: unknown = JSON.parse(data)
    return typeof value === 'object' && value !== null ? value : null
  } catch {
    return null
  }
}
