import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { browserParts, listenToBrowser } from '@/feed/browser-parts'
import { Feed } from '@/feed/feed'
import { FeedProvider } from '@/feed/use-feed'
import { SessionGate } from '@/features/sign-in/components/session-gate'
import { agentsQuery, createQueryClient, roomsQuery } from '@/lib/api/queries'
import { sessionQuery } from '@/lib/api/session'
import { applyToRooms } from '@/lib/room-list'
import { applyTheme } from '@/lib/theme'
import { router } from './router'
import './styles/fonts.css'
import './styles/tokens.css'
import './styles/base.css'

applyTheme()
const feed = new Feed(browserParts)
listenToBrowser(feed)
feed.start()

// What every page needs is on its way before there is one.
const queries = createQueryClient()
feed.onRooms((message) => queries.setQueryData(roomsQuery.queryKey, (known) => applyToRooms(known ?? [], message)))
void queries.prefetchQuery(sessionQuery)
void queries.prefetchQuery(roomsQuery)
void queries.prefetchQuery(agentsQuery)

const root = document.getElementById('root')
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <FeedProvider feed={feed}>
          <SessionGate>
            <RouterProvider router={router} />
          </SessionGate>
        </FeedProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
}
