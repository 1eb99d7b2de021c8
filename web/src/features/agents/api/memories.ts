import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Memory } from '@/lib/api/types'

export function memoriesQuery(id: string) {
  return queryOptions({
    queryKey: queryKeys.agents.memories(id),
    queryFn: async (): Promise<Memory[]> => (await answerOf(api.GET('/api/agents/{id}/memories', { params: { path: { id } } }))).memories,
  })
}

export async function changeMemory(id: string, memory: string, text: string): Promise<void> {
  await answerOf(api.PATCH('/api/agents/{id}/memories/{memory_id}', { params: { path: { id, memory_id: memory }, header: once() }, body: { text } }))
}

export async function deleteMemory(id: string, memory: string): Promise<void> {
  await answerOf(api.DELETE('/api/agents/{id}/memories/{memory_id}', { params: { path: { id, memory_id: memory }, header: once() } }))
}
