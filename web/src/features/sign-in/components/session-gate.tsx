import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { useConnection, useFeed } from '@/feed/use-feed'
import { refusals } from '@/lib/api/client'
import { sessionQuery } from '@/lib/api/session'
import type { Session } from '@/lib/api/types'
import { useStore } from '@/lib/store'
import { SignInDialog } from './sign-in-dialog'
import { SignInPage } from './sign-in-page'

/**
 * Lets through who may come in. Who was inside and is not any more signs in over the page, so that what they were typing
 * is still there; and either way they stay at the address that they wanted to go to.
 */
export function SessionGate({ children }: { children: ReactNode }): ReactNode {
  const { data: session, isPending } = useSession()
  const isOut = isRefused(session)
  const [wasInside, setWasInside] = useState(false)
  useEffect(() => {
    if (!isPending && !isOut) setWasInside(true)
  }, [isPending, isOut])
  const comeBack = useComeBack(session?.name ?? null)

  if (isPending) return null
  if (isOut && !wasInside) return <SignInPage onSignedIn={comeBack} />
  return (
    <>
      {children}
      {isOut && <SignInDialog onSignedIn={comeBack} />}
    </>
  )
}

function isRefused(session: Session | undefined): boolean {
  return session !== undefined && session.accounts && !session.signed_in
}

/** Checks the session again after a 401 and after a lost connection, because a WebSocket does not report the reason. */
function useSession() {
  const query = useQuery(sessionQuery)
  const { refetch } = query
  const refused = useStore(refusals)
  const isBroken = useConnection().state === 'reconnecting'
  const isOut = isRefused(query.data)
  useEffect(() => {
    if (!isOut && (refused > 0 || isBroken)) void refetch()
  }, [refetch, refused, isBroken, isOut])
  return query
}

/** After signing in everything is read again. Someone else must not see what was read for the one before. */
function useComeBack(name: string | null): () => Promise<void> {
  const queries = useQueryClient()
  const feed = useFeed()
  const former = useRef<string | null>(null)
  useEffect(() => {
    if (name !== null) former.current = name
  }, [name])
  return async () => {
    const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 })
    if (former.current !== null && session.name !== former.current) return location.reload()
    feed.line.retry()
    await queries.invalidateQueries()
  }
}
