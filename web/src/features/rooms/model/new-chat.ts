import type { QueryClient } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { agentsQuery, providersQuery, roomsQuery } from '@/lib/api/queries'
import type { Agent, Provider, Room } from '@/lib/api/types'
import { isReady } from '@/lib/providers'
import { applyToRooms, summaryOf } from '@/lib/room-list'
import { remember, remembered } from '@/lib/storage'
import { createRoom } from '../api/room-commands'
import { t } from '../texts'
import { en } from '../texts/en'

/** The name of a room that has none yet; its first message gives it one. */
const untitled = (): string => t.newChat

/** In any language: a person may have changed theirs since. */
export function isUntitled(name: string): boolean {
  return name === untitled() || name === en.newChat
}

export function rememberAgents(agents: readonly string[]): void {
  if (agents.length > 0) remember('last-agents', agents)
}

/** A room with the agents that were talked to last, else with the first one that can answer. */
export async function newChat(queries: QueryClient, projectId?: string): Promise<Room> {
  const agents = await queries.fetchQuery(agentsQuery)
  const providers = await queries.fetchQuery(providersQuery).catch(() => [])
  const room = await createRoom({ name: untitled(), agents: agentsForChat(agents, providers, remembered<string[]>('last-agents', [])), projectId })
  queries.setQueryData(roomsQuery.queryKey, (list = []) => applyToRooms(list, { type: 'room', room: summaryOf(room) }))
  return room
}

export function agentsForChat(agents: readonly Agent[], providers: readonly Provider[], last: readonly string[]): string[] {
  const known = last.filter((id) => agents.some((agent) => agent.id === id))
  if (known.length > 0) return known
  const canAnswer = ({ provider }: Agent): boolean => providers.some((one) => one.id === provider && isReady(one))
  // A model before the demo agent.
  const first = agents.find((agent) => canAnswer(agent) && agent.provider !== 'scripted') ?? agents.find(canAnswer) ?? agents[0]
  return first ? [first.id] : []
}

const longest = 60

/** The first words of the first message; nothing where it has none. */
export function titleFrom(text: string): string | null {
  const line = text.split('\n').map((one) => one.replace(/^[#>*\-\s]+/, '').trim()).find((one) => one !== '') ?? ''
  if (line.length <= longest) return line || null
  const cut = line.slice(0, longest)
  const space = cut.lastIndexOf(' ')
  return `${cut.slice(0, space > longest / 2 ? space : longest)}…`
}

export async function nameRoom(id: string, name: string): Promise<void> {
  await answerOf(api.PATCH('/api/rooms/{id}', { params: { path: { id }, header: once() }, body: { name } }))
}
