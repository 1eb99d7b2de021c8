import type { Usage } from '@/lib/api/types'
import type { EventData, KnownEvent } from './event'
import { type Approval, type RunState, hasEnded } from './state'

/** Applies one event to a run; `parts` is the number of parts of its answer. A terminal status is final: older events must not undo what REST returned. */
export function foldRun(run: RunState, event: KnownEvent, parts: number): RunState {
  switch (event.type) {
    case 'run_queued':
      return { ...run, messageId: event.data.message_id, queuedSeq: event.seq, whole: true }
    case 'run_started': {
      const { provider, model } = event.data
      const started = { ...run, provider, model: run.model ?? model ?? null, startedAt: event.created_at }
      return hasEnded(run) ? started : { ...started, status: 'running' }
    }
    case 'status':
      if (event.data.status === 'whisper') return { ...run, whispers: [...run.whispers, event.data.message ?? ''] }
      return { ...run, activity: event.data.message, steered: steer(run.steered, event.data) }
    case 'content_delta':
    case 'thinking_delta':
    case 'tool_use':
      // The previous status text is obsolete now.
      return run.activity === null ? run : { ...run, activity: null }
    case 'stream_start':
      return { ...run, streamId: event.data.stream_id }
    case 'approval_requested':
      return request(run, event.data, event.created_at, parts)
    case 'approval_resolved':
      return resolve(run, event.data)
    case 'usage':
      return hasEnded(run) ? run : meter(run, event.data)
    case 'stream_end':
      return { ...run, skipped: event.data.skipped }
    case 'run_completed':
      return end(run, event, 'completed')
    case 'run_failed':
      return { ...end(run, event, 'failed'), error: event.data.error }
    case 'run_cancelled':
      return { ...end(run, event, 'cancelled'), receipt: event.data.receipt }
    case 'run_interrupted':
      return { ...end(run, event, 'interrupted'), receipt: event.data.receipt, reason: event.data.reason }
    default:
      return run
  }
}

type EndEvent = Extract<KnownEvent, { type: 'run_completed' | 'run_failed' | 'run_cancelled' | 'run_interrupted' }>

function end(run: RunState, event: EndEvent, status: RunState['status']): RunState {
  const { usage, cost, duration_ms } = event.data
  return { ...run, status, usage, cost: cost ?? null, durationMs: duration_ms, endedAt: event.created_at, activity: null }
}

function request(run: RunState, data: EventData['approval_requested'], requestedAt: string, partsBefore: number): RunState {
  if (run.approvals.some((known) => known.id === data.approval_id)) return run
  const approval: Approval = {
    id: data.approval_id,
    runId: run.id,
    toolUseId: data.tool_use_id ?? null,
    name: data.name,
    input: data.input,
    requestedAt,
    expiresAt: data.expires_at,
    isQuestion: data.is_question ?? false,
    pattern: data.pattern ?? null,
    partsBefore,
    decision: null,
    isRemembered: false,
  }
  const status = hasEnded(run) ? run.status : 'waiting_for_approval'
  return { ...run, status, approvals: [...run.approvals, approval] }
}

function resolve(run: RunState, data: EventData['approval_resolved']): RunState {
  const approvals = run.approvals.map((approval) => {
    if (approval.id !== data.approval_id) return approval
    const decided = { ...approval, decision: data.decision, isRemembered: data.remember ?? false }
    return data.input === undefined ? decided : { ...decided, changedInput: data.input }
  })
  const waits = approvals.some((approval) => approval.decision === null)
  const status = run.status === 'waiting_for_approval' && !waits ? 'running' : run.status
  return { ...run, status, approvals }
}

function steer(steered: RunState['steered'], { status, message_id }: EventData['status']): RunState['steered'] {
  return status === 'steered' && message_id && !steered.includes(message_id) ? [...steered, message_id] : steered
}

function meter(run: RunState, data: EventData['usage']): RunState {
  const reported = data.cost ?? null
  // One unknown price makes the sum unknown.
  const sum = run.cost === null || reported === null ? null : addDollars(run.cost, reported)
  const cost = run.metered ? sum : reported
  return { ...run, usage: addUsage(run.usage, data.usage), cost, metered: true, model: data.model ?? run.model }
}

export function addUsage(one: Usage, other: Usage): Usage {
  return {
    input_tokens: one.input_tokens + other.input_tokens,
    output_tokens: one.output_tokens + other.output_tokens,
    cache_read_tokens: one.cache_read_tokens + other.cache_read_tokens,
    cache_write_tokens: one.cache_write_tokens + other.cache_write_tokens,
  }
}

/** Summed in whole nano-dollars, as the server does: 0.1 + 0.2 is 0.3. */
export function addDollars(one: number, other: number): number {
  return (Math.round(one * 1e9) + Math.round(other * 1e9)) / 1e9
}
