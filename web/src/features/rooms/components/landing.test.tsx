// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { type RenderResult, cleanup, configure, render, waitFor } from '@testing-library/react'
import { StrictMode } from 'react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createQueryClient, roomsQuery } from '@/lib/api/queries'
import type { RoomSummary } from '@/lib/api/types'
import { summaryOf } from '@/lib/room-list'
import { Landing } from './landing'

const navigate = vi.hoisted(() => vi.fn())
vi.mock('@tanstack/react-router', () => ({ useNavigate: () => navigate }))

// A busy machine takes its time; nothing waits for it to pass.
configure({ asyncUtilTimeout: 20_000 })

const at = '2026-01-01T00:00:00Z'
const lobby = summaryOf({ id: 'lobby', name: 'Lobby', agents: [], policy: { when_busy: 'enqueue' } as RoomSummary['policy'], head: 1, created_at: at, updated_at: at })

beforeEach(() => navigate.mockClear())
afterEach(cleanup)

/** The page while the list of rooms is on its way, and a way to let it arrive. */
function landing(): { page: RenderResult; arrive: () => Promise<void> } {
  const queries = createQueryClient()
  let answer: (rooms: RoomSummary[]) => void = () => {}
  const asked = queries.prefetchQuery({ ...roomsQuery, queryFn: () => new Promise<RoomSummary[]>((resolve) => (answer = resolve)) })
  const page = render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Landing />
      </QueryClientProvider>
    </StrictMode>,
  )
  const arrive = async (): Promise<void> => {
    answer([lobby])
    await asked
  }
  return { page, arrive }
}

it('leads to a room', async () => {
  const { arrive } = landing()
  await arrive()
  await waitFor(() => expect(navigate).toHaveBeenCalledExactlyOnceWith({ to: '/rooms/$roomId', params: { roomId: 'lobby' }, replace: true }))
})

it('does not redirect a user who has gone elsewhere meanwhile', async () => {
  const { page, arrive } = landing()
  page.unmount()
  await arrive()
  // Whatever follows from the answer has happened by then.
  await new Promise((resolve) => setTimeout(resolve))
  expect(navigate).not.toHaveBeenCalled()
})
