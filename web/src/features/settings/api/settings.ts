import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Examination, CreatedToken, Token } from '@/lib/api/types'

export const tokensQuery = queryOptions({
  queryKey: queryKeys.tokens,
  queryFn: async (): Promise<Token[]> => (await answerOf(api.GET('/api/tokens'))).tokens,
})

/** It looks at programs on the machine, which takes a moment: not asked for again without need. */
export const doctorQuery = queryOptions({
  queryKey: queryKeys.doctor,
  staleTime: 60_000,
  queryFn: (): Promise<Examination> => answerOf(api.GET('/api/doctor')),
})

/** `confirm`: the user's token or the server's key once more, so that a borrowed browser creates no token. */
export function makeToken(name: string, confirm: string): Promise<CreatedToken> {
  return answerOf(api.POST('/api/tokens', { params: { header: once() }, body: { name, confirm } }))
}

export async function revokeToken(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/tokens/{id}', { params: { path: { id }, header: once() } }))
}

