import { unfinished } from '@/feed/rows'
import type { RoomState } from '@/feed/state'
import { remember, remembered } from '@/lib/storage'
import { createStore } from '@/lib/store'
import { t } from '../texts'

/** On narrow screens the panel covers the conversation, so it is not restored there. */
const hasRoom = (): boolean => globalThis.matchMedia?.('(min-width: 68rem)').matches ?? false

/** Whether the members are shown. */
export const membersStore = createStore<boolean>(hasRoom() && remembered('members', false))

export function toggleMembers(): void {
  membersStore.set(!membersStore.get())
  if (hasRoom()) remember('members', membersStore.get() || null)
}

/** What an agent does in a room just now, in a word or two. */
export function doingOf(state: RoomState | null, agentId: string): string | null {
  if (!state) return null
  const open = unfinished(state.runs)
  const own = open.filter((run) => run.agentId === agentId)
  if (own.some((run) => run.status === 'waiting_for_approval')) return t.waitingForYou
  if (own.some((run) => run.status === 'running')) return t.answering
  const queued = open.filter((run) => run.status === 'queued')
  if (own.length === 0) return null
  return queued[0]?.agentId === agentId ? t.nextUp : t.queued
}
