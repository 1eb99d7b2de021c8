// First: it takes the code of a sign-in link out of the address before anything else reads that.
import { pendingCode } from '@/features/sign-in/model/sign-in-link'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { type ReactNode, StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { preventFileNavigation } from '@/components/layout/no-file-navigation'
import { browserParts, listenToBrowser } from '@/feed/browser-parts'
import { Feed } from '@/feed/feed'
import { FeedProvider } from '@/feed/use-feed'
import { SessionGate } from '@/features/sign-in/components/session-gate'
import { agentsQuery, createQueryClient, roomsQuery } from '@/lib/api/queries'
import { sessionQuery } from '@/lib/api/session'
import { applyToRooms } from '@/lib/room-list'
import { useLanguage } from '@/lib/i18n'
import { onPreference } from '@/lib/preferences'
import { applyTheme } from '@/lib/theme'
import { applyLanguage } from './language'
import { router } from './router'
import { registerServiceWorker } from './service-worker'
import './styles/fonts.css'
import './styles/tokens.css'
import './styles/base.css'

applyTheme()
preventFileNavigation()
registerServiceWorker()
const feed = new Feed(browserParts)
listenToBrowser(feed)
const queries = createQueryClient()
feed.onRooms((message) => queries.setQueryData(roomsQuery.queryKey, (known) => applyToRooms(known ?? [], message)))
void queries.prefetchQuery(sessionQuery)
// What every page needs is on its way before there is one. A browser that is about to sign in would only be refused.
if (pendingCode.get() === null) {
  feed.start()
  void queries.prefetchQuery(roomsQuery)
  void queries.prefetchQuery(agentsQuery)
}

/** A change of the language draws everything again, because strings are read while drawing. */
function App(): ReactNode {
  const language = useLanguage()
  return (
    <SessionGate key={language}>
      <RouterProvider router={router} />
    </SessionGate>
  )
}

async function start(): Promise<void> {
  const root = document.getElementById('root')
  if (!root) return
  await applyLanguage()
  onPreference(() => void applyLanguage())
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <FeedProvider feed={feed}>
          <App />
        </FeedProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
}

void start()
