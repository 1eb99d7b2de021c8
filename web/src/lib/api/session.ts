import { queryOptions } from '@tanstack/react-query'
import { answerOf, api } from './client'
import { queryKeys } from './query-keys'
import type { Session } from './types'

/** Who this browser is to the server. Open to all, so it answers where nothing else does. */
export const sessionQuery = queryOptions({
  queryKey: queryKeys.session,
  queryFn: (): Promise<Session> => answerOf(api.GET('/api/session')),
  // Nothing is shown before the response, so an unreachable server must fail at once.
  retry: false,
  staleTime: 60_000,
})

/** Lets this browser in by a token, which it forgets at once: what stays is a cookie that no script can read. */
export async function signIn(token: string): Promise<void> {
  await answerOf(api.POST('/api/session', { body: { token } }))
}

/** The same by the code of a one-time link. */
export async function signInByCode(code: string): Promise<void> {
  await answerOf(api.POST('/api/session', { body: { code } }))
}

export async function signOut(): Promise<void> {
  await answerOf(api.DELETE('/api/session'))
}
