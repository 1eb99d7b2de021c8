import type { RoomSummary } from './api/types'
import { t } from './texts'

/** Something that a person may want to know while they look elsewhere. */
export interface Attention {
  roomId: string
  title: string
  body: string
  kind: 'approval' | 'answer'
}

/** What changed between two lists of rooms: an agent began to wait for a person, or has finished its answer. */
export function attentionIn(before: readonly RoomSummary[], after: readonly RoomSummary[]): Attention[] {
  const known = new Map(before.map((room) => [room.id, room]))
  return after.flatMap((room): Attention[] => {
    const old = known.get(room.id)
    if (!old) return []
    const base = { roomId: room.id, title: room.name }
    if (room.waiting && !old.waiting) return [{ ...base, kind: 'approval', body: t.anAgentNeedsYourApproval }]
    const last = room.last_message
    const hasAnswered = old.busy && !room.busy && last?.author.kind === 'agent'
    return hasAnswered ? [{ ...base, kind: 'answer', body: `${last.author.name}: ${last.text.slice(0, 120) || 'finished'}` }] : []
  })
}
