import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useEffectEvent, useRef, useState } from 'react'
import { useConnection, useFeed } from '@/feed/use-feed'
import { refusals } from '@/lib/api/client'
import { sessionQuery } from '@/lib/api/session'
import type { Session } from '@/lib/api/types'
import { useStore } from '@/lib/store'
import { useLinkSignIn } from '../model/use-link-sign-in'
import { SignInDialog } from './sign-in-dialog'
import { SignInPage, SigningIn } from './sign-in-page'

/**
 * Lets through who may come in. Who was inside and is not any more signs in over the page, so that what they were typing
 * is still there; and either way they stay at the address that they wanted to go to.
 */
export function SessionGate({ children }: { children: ReactNode }): ReactNode {
  const { data: session, isPending } = useSession()
  const comeBack = useComeBack(session?.name ?? null)
  const link = useLinkSignIn(comeBack)
  const isUnknown = isPending || link.isPending
  const isOut = isRefused(session) || (link.error !== null && !session?.signed_in)
  const [wasInside, setWasInside] = useState(false)
  useEffect(() => {
    if (!isUnknown && !isOut) setWasInside(true)
  }, [isUnknown, isOut])
  useOtherTab(isOut, comeBack)
  // A connection would only be refused, again and again.
  const feed = useFeed()
  useEffect(() => {
    if (isUnknown) return
    if (isOut) feed.stop()
    else feed.start()
  }, [feed, isUnknown, isOut])

  if (link.isPending && !wasInside) return <SigningIn />
  if (isPending) return null
  if (isOut && !wasInside) return <SignInPage link={link} onSignedIn={comeBack} />
  return (
    <>
      {children}
      {isOut && <SignInDialog onSignedIn={comeBack} />}
    </>
  )
}

function isRefused(session: Session | undefined): boolean {
  return session !== undefined && !session.signed_in
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

/** A link opens in another tab. A person who returns from there is signed in here too. */
function useOtherTab(isOut: boolean, comeBack: () => Promise<void>): void {
  const queries = useQueryClient()
  const onReturn = useEffectEvent(async () => {
    const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 }).catch(() => null)
    if (session?.signed_in) await comeBack()
  })
  useEffect(() => {
    if (!isOut) return
    const returned = (): void => void onReturn()
    window.addEventListener('focus', returned)
    return () => window.removeEventListener('focus', returned)
  }, [isOut])
}

/** After signing in everything is read again. Someone else must not see what was read for the one before. */
function useComeBack(name: string | null): () => Promise<void> {
  const queries = useQueryClient()
  const former = useRef<string | null>(null)
  useEffect(() => {
    if (name !== null) former.current = name
  }, [name])
  return async () => {
    const session = await queries.fetchQuery({ ...sessionQuery, staleTime: 0 })
    if (former.current !== null && session.name !== former.current) return location.reload()
    await queries.invalidateQueries()
  }
}
