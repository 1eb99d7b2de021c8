import type { Attachment, Message as StoredMessage } from '@/lib/api/types'
import type { Pending, RoomState } from './state'

export type NewPending = Pick<Pending, 'key' | 'text' | 'attachments' | 'mentions' | 'whenBusy' | 'createdAt'>

export function withPending(state: RoomState, sent: NewPending): RoomState {
  const pending: Pending = { ...sent, state: 'sending', problem: null, problemCode: null, messageId: null, confirmed: false }
  return { ...state, pending: [...state.pending, pending] }
}

/**
 * The server's answer says which message it became; the journal may have shown it already. Where messages with the same
 * text had been mistaken for each other, what this one was taken for goes to the other: none vanishes or appears twice.
 */
export function confirmed(state: RoomState, key: string, message: Pick<StoredMessage, 'id' | 'seq'>): RoomState {
  const own = state.pending.find((one) => one.key === key)
  const freed = own && own.messageId !== message.id ? own.messageId : null
  const isOpen = (one: Pending): boolean => one.key !== key && !one.confirmed && own !== undefined && saysSame(one, own)
  const mistaken = state.pending.find((one) => isOpen(one) && one.messageId === message.id)
  const heir = mistaken ?? (freed === null ? undefined : state.pending.find((one) => isOpen(one) && one.messageId === null))
  const settled = heir ? change(state, heir.key, { messageId: freed }) : state
  const isShown = state.messages.has(message.id) || message.seq <= state.seq
  if (isShown) return discarded(settled, key)
  return change(settled, key, { messageId: message.id, confirmed: true, state: 'sending', problem: null, problemCode: null })
}

interface Said {
  text: string
  attachments: readonly Attachment[]
}

export function saysSame(one: Said, other: Said): boolean {
  const files = ({ attachments }: Said): string => attachments.map(({ url }) => url).join(' ')
  return one.text === other.text && files(one) === files(other)
}

export function resent(state: RoomState, key: string): RoomState {
  return change(state, key, { state: 'sending', problem: null, problemCode: null })
}

export function offline(state: RoomState, key: string): RoomState {
  return change(state, key, { state: 'offline' })
}

export function refused(state: RoomState, key: string, problem: string, problemCode: string | null): RoomState {
  return change(state, key, { state: 'refused', problem, problemCode })
}

export function discarded(state: RoomState, key: string): RoomState {
  return { ...state, pending: state.pending.filter((one) => one.key !== key) }
}

function change(state: RoomState, key: string, changes: Partial<Pending>): RoomState {
  return { ...state, pending: state.pending.map((one) => (one.key === key ? { ...one, ...changes } : one)) }
}
