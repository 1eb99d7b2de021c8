import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Room, RoomPolicyChange, Tape } from '@/lib/api/types'

/** Who answers next in a room, and what is planned after that. `runs` says what the room is doing: when that changes, so does the plan. */
export function tapeQuery(id: string, runs: string) {
  return queryOptions({
    queryKey: queryKeys.rooms.tape(id, runs),
    queryFn: () => answerOf(api.GET('/api/rooms/{id}/tape', { params: { path: { id } } })),
    // Another person may have paused it.
    refetchInterval: 5000,
    placeholderData: (before: Tape | undefined) => before,
  })
}

export type TapeAction = 'pause' | 'resume' | 'step'

export function changeTape(id: string, action: TapeAction): Promise<Tape> {
  const params = { params: { path: { id } } }
  if (action === 'pause') return answerOf(api.POST('/api/rooms/{id}/tape/pause', params))
  if (action === 'resume') return answerOf(api.POST('/api/rooms/{id}/tape/resume', params))
  return answerOf(api.POST('/api/rooms/{id}/tape/step', params))
}

export function skipCell(id: string, cell: string): Promise<Tape> {
  return answerOf(api.POST('/api/rooms/{id}/tape/skip', { params: { path: { id } }, body: { cell } }))
}

/** Lets an agent speak before what is planned. */
export function insertAgent(id: string, agent: string): Promise<Tape> {
  return answerOf(api.POST('/api/rooms/{id}/tape/insert', { params: { path: { id } }, body: { agent_id: agent } }))
}

/** `cells` are all planned ones, in their new order. */
export function reorderCells(id: string, cells: string[]): Promise<Tape> {
  return answerOf(api.POST('/api/rooms/{id}/tape/reorder', { params: { path: { id } }, body: { cells } }))
}

/** `messages` are all that wait, in their new order. */
export function reorderMessages(id: string, messages: string[]): Promise<Tape> {
  return answerOf(api.POST('/api/rooms/{id}/tape/reorder', { params: { path: { id } }, body: { messages } }))
}

export function changePolicy(id: string, policy: RoomPolicyChange): Promise<Room> {
  return answerOf(api.PATCH('/api/rooms/{id}', { params: { path: { id }, header: once() }, body: { policy } }))
}
