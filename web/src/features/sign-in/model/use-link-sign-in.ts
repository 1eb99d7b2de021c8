import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { sessionQuery, signInByCode } from '@/lib/api/session'
import { useStore } from '@/lib/store'
import { pendingCode } from './sign-in-link'

export interface LinkSignIn {
  isPending: boolean
  error: unknown
  /** The same link again, after the server could not be reached. */
  retry: () => void
}

/** Exchanges the code of a one-time link for a session. */
export function useLinkSignIn(onSignedIn: () => Promise<void>): LinkSignIn {
  const queries = useQueryClient()
  const { mutate, isPending, error, variables } = useMutation({
    mutationFn: async (code: string) => {
      try {
        await signInByCode(code)
      } catch (refusal) {
        // A link that was used before does no harm to somebody who is signed in.
        const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => null)
        if (!session?.signed_in) throw refusal
      }
      await onSignedIn()
    },
  })
  const code = useStore(pendingCode)
  useEffect(() => {
    if (code === null) return
    // Later, because React runs effects twice in development, and a code works once.
    const timer = setTimeout(() => {
      pendingCode.set(null)
      mutate(code)
    })
    return () => clearTimeout(timer)
  }, [code, mutate])
  return { isPending: code !== null || isPending, error, retry: () => variables !== undefined && mutate(variables) }
}
