import type { Attachment, Author, MessageStatus, Message as StoredMessage, Receipt, RunError, RunStatus, ToolOutcome, Usage, WhenBusy } from '@/lib/api/types'
import type { Decision, EventData, RoomEvent } from './event'

export interface TextPart {
  type: 'text' | 'thinking'
  text: string
  item?: string | null
}

export interface ToolPart {
  type: 'tool'
  tool_use_id: string
  name: string
  input: unknown
  output: string
  result: ToolOutcome | null
  /** The run of another agent that the call started. */
  child?: EventData['run_delegated']['child']
  /** Known only where the run was folded from its events. */
  startedAt?: string
  endedAt?: string
}

export type Part = TextPart | ToolPart

/** An agent's name is looked up when it is shown: it may be changed at any time. */
export type Speaker = { kind: 'person'; name: string } | { kind: 'agent'; id: string }

export interface Message {
  id: string
  seq: number
  author: Speaker
  runId: string | null
  status: MessageStatus
  parts: readonly Part[]
  attachments: readonly Attachment[]
  createdAt: string
}

export interface Approval {
  id: string
  runId: string
  toolUseId: string | null
  name: string
  input: unknown
  requestedAt: string
  expiresAt: string
  isQuestion: boolean
  /** What can be allowed for good with one answer, such as `Bash(git status:*)`. */
  pattern: string | null
  /** How many parts its answer had when it came: its place where no tool call shows it. */
  partsBefore: number
  decision: Decision | null
  changedInput?: unknown
  /** Such calls need no asking from then on. */
  isRemembered: boolean
}

export interface RunState {
  id: string
  agentId: string | null
  /** The message that it answers. */
  messageId: string | null
  queuedSeq: number | null
  /** The message that it becomes. */
  streamId: string | null
  status: RunStatus
  provider: string | null
  model: string | null
  usage: Usage
  cost: number | null
  metered: boolean
  durationMs: number | null
  error: RunError | null
  receipt: Receipt | null
  /** Why it was interrupted. */
  reason: string | null
  skipped: boolean
  /** The current status text. */
  activity: string | null
  startedAt: string | null
  endedAt: string | null
  approvals: readonly Approval[]
  /** Messages that were added to this answer while it ran. */
  steered: readonly string[]
  /** What the agent told people, and no other agent. */
  whispers: readonly string[]
  /** Folded from its first event on: approvals and times of its tools are all here. */
  whole: boolean
}

/** What a person sent from this tab and the journal has not shown yet. */
export interface Pending {
  key: string
  text: string
  attachments: readonly Attachment[]
  mentions: readonly string[]
  whenBusy: WhenBusy | null
  createdAt: string
  state: 'sending' | 'offline' | 'refused'
  problem: string | null
  /** The code of the problem, such as `budget_exceeded`. */
  problemCode: string | null
  /** Set from the server's response; guessed from an equal text until the response arrives. */
  messageId: string | null
  confirmed: boolean
}

export interface RoomState {
  roomId: string
  epoch: string
  /** Everything up to here is folded in, nothing after it. */
  seq: number
  /** The highest seq that anybody has spoken of. */
  head: number
  /** Messages older than this are not loaded; 0 when all are. Nor are those in `skipped`, after a link to an early one. */
  loadedFrom: number
  skipped: { after: number; before: number } | null
  messages: ReadonlyMap<string, Message>
  /** Message ids by seq. */
  order: readonly string[]
  runs: ReadonlyMap<string, RunState>
  names: ReadonlyMap<string, string>
  pending: readonly Pending[]
  /** Events that came before the ones between them and `seq`. */
  early: ReadonlyMap<number, RoomEvent>
}

export const noUsage: Usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }

export function emptyRoom(roomId: string, epoch: string): RoomState {
  return {
    roomId,
    epoch,
    seq: 0,
    head: 0,
    loadedFrom: 0,
    skipped: null,
    messages: new Map(),
    order: [],
    runs: new Map(),
    names: new Map(),
    pending: [],
    early: new Map(),
  }
}

export function newRun(id: string): RunState {
  return {
    id,
    agentId: null,
    messageId: null,
    queuedSeq: null,
    streamId: null,
    status: 'queued',
    provider: null,
    model: null,
    usage: noUsage,
    cost: null,
    metered: false,
    durationMs: null,
    error: null,
    receipt: null,
    reason: null,
    skipped: false,
    activity: null,
    startedAt: null,
    endedAt: null,
    approvals: [],
    steered: [],
    whispers: [],
    whole: false,
  }
}

const ends: ReadonlySet<RunStatus> = new Set(['completed', 'failed', 'cancelled', 'interrupted'])

export function hasEnded(run: Pick<RunState, 'status'>): boolean {
  return ends.has(run.status)
}

export function partOf(part: StoredMessage['parts'][number]): Part {
  if (part.type === 'tool') {
    const { tool_use_id, name, input, output = '', result = null, child } = part
    const call = { type: 'tool' as const, tool_use_id, name, input, output, result }
    return child ? { ...call, child } : call
  }
  return part.item == null ? { type: part.type, text: part.text } : part
}

export function speakerOf(author: Author): Speaker {
  return author.kind === 'agent' ? { kind: 'agent', id: author.id } : author
}
