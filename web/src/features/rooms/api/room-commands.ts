import { answerOf, api, newKey, once } from '@/lib/api/client'
import type { components } from '@/lib/api/schema'
import type { EventPage, Message, Receipt, Remembered, Room, RoomSummary, RunStatus, WhenBusy } from '@/lib/api/types'

export interface RoomSettings {
  name: string
  agents: string[]
  /** Without it the server decides. */
  whenBusy?: WhenBusy
}

export interface NewRoom extends RoomSettings {
  /** The project in whose folder its agents work; without one the room has a folder of its own. */
  projectId?: string
}

export function createRoom({ name, agents, whenBusy, projectId }: NewRoom, key: string = newKey()): Promise<Room> {
  const body = { name, agents, policy: whenBusy && { when_busy: whenBusy }, project_id: projectId }
  return answerOf(api.POST('/api/rooms', { params: { header: { 'Idempotency-Key': key } }, body }))
}

export function changeRoom(id: string, { name, agents, whenBusy }: RoomSettings): Promise<Room> {
  const body = { name, agents, policy: { when_busy: whenBusy } }
  return answerOf(api.PATCH('/api/rooms/{id}', { params: { path: { id }, header: once() }, body }))
}

/** Who answers in a room, in that order. */
export function setAgents(id: string, agents: string[]): Promise<Room> {
  return answerOf(api.PATCH('/api/rooms/{id}', { params: { path: { id }, header: once() }, body: { agents } }))
}

/** Where a room is in the list; fields that are left out stay. */
export interface RoomPlace {
  pinned?: boolean
  archived?: boolean
  folder?: string | null
}

export async function organizeRoom(id: string, place: RoomPlace): Promise<void> {
  await answerOf(api.PATCH('/api/rooms/{id}', { params: { path: { id }, header: once() }, body: place }))
}

export async function archivedRooms(): Promise<RoomSummary[]> {
  return (await answerOf(api.GET('/api/rooms', { params: { query: { archived: true, limit: 500 } } }))).rooms
}

/** A new room with the messages up to this one. */
export function branchRoom(id: string, messageId: string, name: string | undefined): Promise<Room> {
  return answerOf(api.POST('/api/rooms/{id}/fork', { params: { path: { id }, header: once() }, body: { message_id: messageId, name } }))
}

export async function deleteRoom(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/rooms/{id}', { params: { path: { id }, header: once() } }))
}

export interface Stopped {
  id: string
  status: RunStatus
  receipt: Receipt
}

/** Comes back when everything in the room has really stopped. */
export async function stopRoom(id: string): Promise<Stopped[]> {
  return (await answerOf(api.POST('/api/rooms/{id}/cancel', { params: { path: { id } } }))).runs
}

export function stopRun(id: string): Promise<Stopped> {
  return answerOf(api.POST('/api/runs/{id}/cancel', { params: { path: { id } } }))
}

export interface ApprovalAnswer {
  decision: 'allow' | 'deny'
  input?: unknown
  /** Do not ask this agent again in this room: about this input, about what matches the pattern, or about the tool. */
  remember?: 'exact' | 'pattern' | 'tool'
}

export async function answerApproval(runId: string, approvalId: string, answer: ApprovalAnswer): Promise<void> {
  const path = { id: runId, approval: approvalId }
  await answerOf(api.POST('/api/runs/{id}/approvals/{approval}', { params: { path }, body: { remember: false, ...answer } }))
}

const pageLimit = 1000

/** The whole conversation, oldest first. */
export async function allMessages(id: string): Promise<Message[]> {
  const messages: Message[] = []
  for (let before: number | undefined; ; ) {
    const query = { limit: pageLimit, before }
    const page = await answerOf(api.GET('/api/rooms/{id}/messages', { params: { path: { id }, query } }))
    messages.unshift(...page.messages)
    if (!page.has_more) return messages
    before = page.messages[0]?.seq
  }
}

/** A page of events with what the provider sent. */
export async function rawEvents(id: string, after: number, limit: number): Promise<EventPage> {
  const query = { after: String(after), limit, raw: true }
  return (await answerOf(api.GET('/api/rooms/{id}/events', { params: { path: { id }, query } }))) as EventPage
}

/** The tools that need no asking in a room. */
export async function rememberedTools(id: string): Promise<Remembered[]> {
  return (await answerOf(api.GET('/api/rooms/{id}/remembered', { params: { path: { id } } }))).remembered
}

export async function forgetTool(id: string, { agent_id, tool }: Remembered): Promise<void> {
  const path = { id, agent: agent_id }
  await answerOf(api.DELETE('/api/rooms/{id}/remembered/{agent}', { params: { path, query: { tool } } }))
}

export type ProjectServers = components['schemas']['McpTrust']

/** The MCP servers that the `.mcp.json` in a room's folder names, and whether they may be used. */
export function projectServers(id: string): Promise<ProjectServers> {
  return answerOf(api.GET('/api/rooms/{id}/mcp-trust', { params: { path: { id } } }))
}

/** Trusts exactly the file that was looked at; one that was changed since then is refused. */
export function trustProject(id: string, digest: string): Promise<ProjectServers> {
  return answerOf(api.POST('/api/rooms/{id}/mcp-trust', { params: { path: { id } }, body: { digest } }))
}

export async function distrustProject(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/rooms/{id}/mcp-trust', { params: { path: { id } } }))
}
