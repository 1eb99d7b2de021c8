import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Message, Proposal, Round, Training, TrainingRoom } from '@/lib/api/types'

export function trainingQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.skills.training(name),
    queryFn: (): Promise<Training> => answerOf(api.GET('/api/skills/{name}/training', { params: { path: { name } } })),
  })
}

export function proposalQuery(name: string, id: string) {
  return queryOptions({
    queryKey: queryKeys.skills.proposal(name, id),
    queryFn: (): Promise<Proposal> => answerOf(api.GET('/api/skills/{name}/training/proposals/{id}', { params: { path: { name, id } } })),
  })
}

const newest = 50

/** The newest messages of a training room, oldest of them first. Asked for again soon: the agent may be at it. */
export function trainingMessagesQuery(roomId: string) {
  return queryOptions({
    queryKey: queryKeys.skills.messages(roomId),
    queryFn: async (): Promise<Message[]> =>
      (await answerOf(api.GET('/api/rooms/{id}/messages', { params: { path: { id: roomId }, query: { limit: newest } } }))).messages,
    refetchInterval: 2000,
  })
}

export function beginTraining(name: string, agentId: string): Promise<TrainingRoom> {
  return answerOf(api.POST('/api/skills/{name}/training', { params: { path: { name }, header: once() }, body: { agent_id: agentId } }))
}

export async function giveTask(roomId: string, text: string): Promise<void> {
  await answerOf(api.POST('/api/rooms/{id}/messages', { params: { path: { id: roomId }, header: once() }, body: { text } }))
}

export interface Rating {
  messageId: string
  score: number
  comment: string
  issues: string[]
  improvements: string[]
}

export function rate(name: string, { messageId, score, comment, issues, improvements }: Rating): Promise<Round> {
  const body = { message_id: messageId, score, comment: comment.trim() || null, issues, improvements }
  return answerOf(api.POST('/api/skills/{name}/training/rounds', { params: { path: { name }, header: once() }, body }))
}

/** Takes the new body out of an answer. */
export function propose(name: string, messageId: string): Promise<Proposal> {
  const params = { path: { name }, header: once() }
  return answerOf(api.POST('/api/skills/{name}/training/proposals', { params, body: { message_id: messageId } }))
}

export function acceptProposal(name: string, id: string): Promise<Proposal> {
  return answerOf(api.POST('/api/skills/{name}/training/proposals/{id}/accept', { params: { path: { name, id }, header: once() } }))
}

export function dropProposal(name: string, id: string, comment: string): Promise<Proposal> {
  const body = { comment: comment.trim() || null }
  return answerOf(api.POST('/api/skills/{name}/training/proposals/{id}/drop', { params: { path: { name, id }, header: once() }, body }))
}
