import { answerOf, api, once } from '@/lib/api/client'
import type { Agent, AgentSpec, Room, Run } from '@/lib/api/types'
import { t } from '../texts'

export function createAgent(spec: AgentSpec): Promise<Agent> {
  return answerOf(api.POST('/api/agents', { params: { header: once() }, body: spec }))
}

export function changeAgent(id: string, patch: Partial<AgentSpec>): Promise<Agent> {
  return answerOf(api.PATCH('/api/agents/{id}', { params: { path: { id }, header: once() }, body: patch }))
}

export async function deleteAgent(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/agents/{id}', { params: { path: { id }, header: once() } }))
}

export function testRoomName({ name }: Pick<Agent, 'name'>): string {
  return t.testOf(name).slice(0, 120)
}

export function createTestRoom(agent: Agent): Promise<Room> {
  const body = { name: testRoomName(agent), agents: [agent.id] }
  return answerOf(api.POST('/api/rooms', { params: { header: once() }, body }))
}

export function createRoomWith(agent: Agent): Promise<Room> {
  return answerOf(api.POST('/api/rooms', { params: { header: once() }, body: { name: agent.name, agents: [agent.id] } }))
}

/** Comes back when it has really stopped. */
export async function stopRun(id: string): Promise<void> {
  await answerOf(api.POST('/api/runs/{id}/cancel', { params: { path: { id } } }))
}

export function readRun(id: string): Promise<Run> {
  return answerOf(api.GET('/api/runs/{id}', { params: { path: { id } } }))
}

export async function answerApproval(runId: string, approvalId: string, decision: 'allow' | 'deny'): Promise<void> {
  const path = { id: runId, approval: approvalId }
  await answerOf(api.POST('/api/runs/{id}/approvals/{approval}', { params: { path }, body: { decision, remember: false } }))
}
