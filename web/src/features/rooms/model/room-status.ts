import { type Status } from '@/components/ui/status-dot'
import { unfinished } from '@/feed/rows'
import { type Message, type RoomState, type RunState, textOf } from '@/feed/state'

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

const longest = 120

/** What the list of rooms says of one: the newest thing that was said in it. */
export function lastLineOf(state: RoomState | null): string {
  if (statusOf(state) === 'waiting') return 'Waits for your answer'
  const message = state?.messages.get(state.order.at(-1) ?? '')
  if (!message) return ''
  const text = firstLine(message)
  return message.author.kind === 'person' ? `You: ${text}` : text
}

function firstLine(message: Message): string {
  const text = textOf(message).trimStart()
  const line = text.slice(0, longest).split('\n')[0] ?? ''
  if (line !== '') return line.replace(/[*_`#>]+/g, '').trim()
  return message.parts.some((part) => part.type === 'tool') ? 'used a tool' : message.status === 'streaming' ? 'begins to answer' : 'no words'
}

export function lastTimeOf(state: RoomState | null): string | null {
  return state?.messages.get(state.order.at(-1) ?? '')?.createdAt ?? null
}
