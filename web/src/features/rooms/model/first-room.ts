import type { QueryClient } from '@tanstack/react-query'
import { ApiError, answerOf, api } from '@/lib/api/client'
import { agentsQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent, Room } from '@/lib/api/types'
import { applyToRooms, summaryOf } from '@/lib/room-list'
import { remembered } from '@/lib/storage'
import { createRoom } from '../api/room-commands'
import { t } from '../texts'

/** The room to begin in: the last one, else the newest, else one that is made now with the scripted agent in it. */
export async function firstRoom(queries: QueryClient): Promise<Room> {
  const rooms = await queries.fetchQuery(roomsQuery)
  const last = remembered<string | null>('last-room', null)
  const known = rooms.find((room) => room.id === last) ?? rooms[0]
  if (known) return known
  const made = await makeFirst(await someAgent(queries))
  // Known at once: asking for the list again would keep a newcomer waiting.
  queries.setQueryData(roomsQuery.queryKey, (list = []) => applyToRooms(list, { type: 'room', room: summaryOf(made) }))
  return made
}

async function someAgent(queries: QueryClient): Promise<Agent> {
  const agents = await queries.fetchQuery(agentsQuery)
  const found = agents.find((agent) => agent.provider === 'scripted') ?? agents[0]
  if (found) return found
  return answerOf(api.POST('/api/agents', { body: { name: 'scripted', provider: 'scripted' } }))
}

async function makeFirst(agent: Agent): Promise<Room> {
  const settings = { name: t.lobby, agents: [agent.id] }
  try {
    // The same key in every tab: two that open at once make one room.
    return await createRoom(settings, `first-room-${agent.id}`)
  } catch (error) {
    // That room was made today and deleted since.
    if (error instanceof ApiError && (error.status === 404 || error.status === 409)) return createRoom(settings)
    throw error
  }
}
