import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Landing } from '@/features/rooms/components/landing'
import { RoomPage } from '@/features/rooms/components/room-page'
import { NotFound } from './not-found'
import { Root } from './root'

const rootRoute = createRootRoute({ component: Root, notFoundComponent: NotFound })

const landingRoute = createRoute({ getParentRoute: () => rootRoute, path: '/', component: Landing })

/** `m` is the journal number of the message that a link points to. */
const roomRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: '/rooms/$roomId',
  validateSearch: (search: Record<string, unknown>): { m?: number } => {
    const m = Number(search.m)
    return Number.isSafeInteger(m) && m > 0 ? { m } : {}
  },
  component: function Room(): ReactNode {
    const { roomId } = roomRoute.useParams()
    const { m } = roomRoute.useSearch()
    return <RoomPage roomId={roomId} target={m ?? null} />
  },
})

// Agents, runs, usage and settings each get a route here, loaded when first visited.
export const router = createRouter({ routeTree: rootRoute.addChildren([landingRoute, roomRoute]) })

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
