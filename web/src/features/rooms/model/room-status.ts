import { type Status } from '@/components/ui/status-dot'
import { unfinished } from '@/feed/rows'
import { textOf } from '@/feed/message-text'
import type { Message, RoomState, RunState } from '@/feed/state'
import type { RoomSummary } from '@/lib/api/types'
import { t } from '../texts'

export function statusOf(state: RoomState | null): Status {
  if (!state) return 'idle'
  const open = unfinished(state.runs)
  if (open.some((run) => run.status === 'waiting_for_approval')) return 'waiting'
  if (open.length > 0) return 'working'
  return newest(state.runs)?.status === 'failed' ? 'failed' : 'idle'
}

function newest(runs: RoomState['runs']): RunState | null {
  let found: RunState | null = null
  for (const run of runs.values()) if ((run.queuedSeq ?? 0) >= (found?.queuedSeq ?? 0)) found = run
  return found
}

/** The status of a room in the room list. */
export interface RoomLine {
  status: Status
  /** The newest message. */
  text: string
  time: string
  /** The seq of the newest message, if it is from an agent. */
  answer: number
}

/** A room that is open here is known to the word; of the others, what the server tells of all. */
export function lineOf(room: RoomSummary, state: RoomState | null): RoomLine {
  const status = state ? statusOf(state) : summaryStatus(room)
  const said = (state && fromState(state)) ?? fromSummary(room)
  const text = status === 'waiting' ? t.needsYourApproval : (said?.text ?? '')
  return { status, text, time: said?.time ?? room.updated_at, answer: said?.answer ?? 0 }
}

function summaryStatus(room: RoomSummary): Status {
  if (room.waiting) return 'waiting'
  if (room.busy) return 'working'
  return room.failed ? 'failed' : 'idle'
}

type Said = Pick<RoomLine, 'text' | 'time' | 'answer'>

function fromState(state: RoomState): Said | null {
  const message = state.messages.get(state.order.at(-1) ?? '')
  if (!message) return null
  const isPerson = message.author.kind === 'person'
  return { text: line(firstLine(message), isPerson), time: message.createdAt, answer: isPerson ? 0 : message.seq }
}

function fromSummary({ last_message: last }: RoomSummary): Said | null {
  if (!last) return null
  const isPerson = last.author.kind === 'person'
  return { text: line(plain(last.text) || t.noText, isPerson), time: last.created_at, answer: isPerson ? 0 : last.seq }
}

function line(text: string, isPerson: boolean): string {
  return isPerson ? t.youWith(text) : text
}

function firstLine(message: Message): string {
  const text = plain(textOf(message))
  if (text !== '') return text
  if (message.attachments.length > 0) return message.attachments.map(({ name }) => name).join(', ')
  return message.parts.some((part) => part.type === 'tool') ? t.usedATool : message.status === 'streaming' ? t.starting : t.noText
}

const longest = 120

/** The first line without the marks of Markdown. */
function plain(text: string): string {
  const first = text.trimStart().slice(0, longest).split('\n')[0] ?? ''
  return first
    .replace(/^\s*(?:#{1,6}\s+|>\s*|[-*+]\s+)+/, '')
    .replace(/(?<![\p{L}\p{N}])[*_`~]+|[*_`~]+(?![\p{L}\p{N}])/gu, '')
    .trim()
}
