// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react'
import type { ReactNode } from 'react'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Feed } from '@/feed/feed'
import { FeedProvider } from '@/feed/use-feed'
import { answerOf, api } from '@/lib/api/client'
import { createQueryClient } from '@/lib/api/queries'
import { SessionGate } from './session-gate'

// Addresses without a host, as the page uses them, mean nothing outside of a browser; the client takes hold of this early.
vi.hoisted(() => {
  const Plain = globalThis.Request
  globalThis.Request = class extends Plain {
    constructor(input: string | URL | Request, init?: RequestInit) {
      super(typeof input === 'string' ? new URL(input, 'http://greenroom.test') : input, init)
    }
  }
})

/** A server with one good token, which can be revoked. */
const server = { hasAccounts: true, isOpen: false, isDown: false, good: 'grm_good' }
const retry = vi.fn()
const state = { state: 'connected' as const }
const feed = { subscribe: () => () => {}, status: () => state, line: { retry } } as unknown as Feed

async function answer(request: Request): Promise<Response> {
  if (server.isDown) throw new TypeError('no network')
  const { pathname } = new URL(request.url)
  const json = (status: number, body: object): Response => Response.json(body, { status })
  if (pathname !== '/api/session') return server.isOpen ? json(200, { rooms: [] }) : json(401, { code: 'unauthorized', detail: 'Send a token.' })
  if (request.method === 'GET') return json(200, { accounts: server.hasAccounts, signed_in: server.isOpen, name: server.isOpen ? 'Ada' : null })
  const { token } = (await request.json()) as { token: string }
  if (token !== server.good) return json(401, { code: 'unauthorized', detail: 'Unknown.' })
  server.isOpen = true
  return new Response(null, { status: 204 })
}

// A busy machine takes its time; nothing waits for it to pass.
configure({ asyncUtilTimeout: 20_000 })

beforeAll(() => {
  HTMLDialogElement.prototype.showModal = function showModal() {
    this.open = true
  }
  HTMLDialogElement.prototype.close = function close() {
    this.open = false
  }
  vi.stubGlobal('fetch', (request: Request) => answer(request))
})
beforeEach(() => {
  Object.assign(server, { hasAccounts: true, isOpen: false, isDown: false })
  retry.mockClear()
})
afterEach(cleanup)

function renderPage(): void {
  const page: ReactNode = (
    <SessionGate>
      <textarea aria-label="Message" />
    </SessionGate>
  )
  render(
    <QueryClientProvider client={createQueryClient()}>
      <FeedProvider feed={feed}>{page}</FeedProvider>
    </QueryClientProvider>,
  )
}

async function signInWith(token: string): Promise<void> {
  fireEvent.change(await screen.findByLabelText('Token'), { target: { value: token } })
  fireEvent.click(screen.getByRole('button', { name: 'Sign in' }))
}

it('asks nobody where there are no accounts', async () => {
  server.hasAccounts = false
  renderPage()
  await screen.findByLabelText('Message')
  expect(screen.queryByLabelText('Token')).toBeNull()
})

it('shows the page where the server cannot be reached: the page says so better', async () => {
  server.isDown = true
  renderPage()
  await screen.findByLabelText('Message')
})

it('asks for a token first, says when it is a wrong one, and then lets in', async () => {
  renderPage()
  await screen.findByRole('heading', { name: 'Sign in' })
  expect(screen.queryByLabelText('Message')).toBeNull()
  await signInWith('grm_bad')
  expect((await screen.findByRole('alert')).textContent).toContain('does not know that token')
  await signInWith('  grm_good ')
  await screen.findByLabelText('Message')
  expect(screen.queryByLabelText('Token')).toBeNull()
  expect(retry).toHaveBeenCalled()
})

it('comes over the page when a token is revoked, and keeps what was typed', async () => {
  server.isOpen = true
  renderPage()
  fireEvent.change(await screen.findByLabelText('Message'), { target: { value: 'half a thought' } })
  server.isOpen = false
  await expect(answerOf(api.GET('/api/rooms'))).rejects.toThrow('Sign in')
  await screen.findByRole('heading', { name: 'Sign in again' })
  await signInWith('grm_good')
  await waitFor(() => expect(screen.queryByRole('heading', { name: 'Sign in again' })).toBeNull())
  expect(screen.getByLabelText<HTMLTextAreaElement>('Message').value).toBe('half a thought')
})
