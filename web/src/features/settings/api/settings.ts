import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, newKey } from '@/lib/api/client'
import type { Examination, CreatedToken, Token } from '@/lib/api/types'

export const tokensQuery = queryOptions({
  queryKey: ['tokens'],
  queryFn: async (): Promise<Token[]> => (await answerOf(api.GET('/api/tokens'))).tokens,
})

/** It looks at programs on the machine, which takes a moment: not asked for again without need. */
export const doctorQuery = queryOptions({
  queryKey: ['doctor'],
  staleTime: 60_000,
  queryFn: (): Promise<Examination> => answerOf(api.GET('/api/doctor')),
})

const once = (): { 'Idempotency-Key': string } => ({ 'Idempotency-Key': newKey() })

export function makeToken(name: string): Promise<CreatedToken> {
  return answerOf(api.POST('/api/tokens', { params: { header: once() }, body: { name } }))
}

export async function revokeToken(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/tokens/{id}', { params: { path: { id }, header: once() } }))
}

