// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, configure, fireEvent, render, screen, waitFor } from '@testing-library/react'
import { type ReactNode, StrictMode } from 'react'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Feed } from '@/feed/feed'
import { FeedProvider } from '@/feed/use-feed'
import { answerOf, api } from '@/lib/api/client'
import { createQueryClient } from '@/lib/api/queries'
import { pendingCode, takeCode } from '../model/sign-in-link'
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

/** A server with one good token, which can be revoked, and one code, which works once. */
const server = { hasAccounts: true, isOpen: false, isDown: false, good: 'grm_good', code: 'once', sent: [] as unknown[] }
const [start, stop] = [vi.fn(), vi.fn()]
const state = { state: 'connected' as const }
const feed = { subscribe: () => () => {}, status: () => state, start, stop } as unknown as Feed

async function answer(request: Request): Promise<Response> {
  if (server.isDown) throw new TypeError('no network')
  const { pathname } = new URL(request.url)
  const json = (status: number, body: object): Response => Response.json(body, { status })
  if (pathname !== '/api/session') return server.isOpen ? json(200, { rooms: [] }) : json(401, { code: 'unauthorized', detail: 'Send a token.' })
  if (request.method === 'GET') return json(200, { accounts: server.hasAccounts, signed_in: server.isOpen || !server.hasAccounts, name: server.isOpen ? 'Ada' : null })
  const sent = (await request.json()) as { token?: string; code?: string }
  server.sent.push(sent)
  if (sent.token !== server.good && sent.code !== server.code) return json(401, { code: 'unauthorized', detail: 'Unknown.' })
  if (sent.code) server.code = ''
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
  Object.assign(server, { hasAccounts: true, isOpen: false, isDown: false, code: 'once', sent: [] })
  history.replaceState(null, '', '/')
  start.mockClear()
  stop.mockClear()
})
afterEach(cleanup)

function renderPage(): void {
  const page: ReactNode = (
    <SessionGate>
      <textarea aria-label="Message" />
    </SessionGate>
  )
  render(
    <StrictMode>
      <QueryClientProvider client={createQueryClient()}>
        <FeedProvider feed={feed}>{page}</FeedProvider>
      </QueryClientProvider>
    </StrictMode>,
  )
}

/** As a browser that opens a link that the server printed. */
function openLink(code: string): void {
  history.replaceState(null, '', `/sign-in#code=${code}`)
  pendingCode.set(takeCode(window))
  renderPage()
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

it('says how to get in', async () => {
  renderPage()
  const page = await screen.findByRole('main')
  await waitFor(() => expect(stop).toHaveBeenCalled())
  expect(start).not.toHaveBeenCalled()
  expect(page.textContent).toContain('Open the link that greenroom serve printed, or run greenroom auth link')
  expect(screen.getByLabelText('Token')).toBeTruthy()
})

it('signs in by a link, once, and keeps nothing of it', async () => {
  openLink('once')
  expect(location.hash).toBe('')
  await screen.findByLabelText('Message')
  expect(server.sent).toEqual([{ code: 'once' }])
  expect(screen.queryByLabelText('Token')).toBeNull()
  expect(start).toHaveBeenCalled()
  expect(location.href + JSON.stringify(history.state) + JSON.stringify({ ...localStorage, ...sessionStorage })).not.toContain('once')
})

it('says what to do when a link was used before or has expired, and takes a token then', async () => {
  openLink('old')
  expect((await screen.findByRole('alert')).textContent).toMatch(/used before or has expired. Run greenroom auth link .* or paste a token/)
  await signInWith('grm_good')
  await screen.findByLabelText('Message')
})

it('takes a new link while the page is open', async () => {
  openLink('old')
  await screen.findByRole('alert')
  history.replaceState(null, '', '/sign-in#code=once')
  window.dispatchEvent(new HashChangeEvent('hashchange'))
  await screen.findByLabelText('Message')
})

it('does not mind a used link in a browser that is signed in', async () => {
  server.isOpen = true
  openLink('old')
  await screen.findByLabelText('Message')
  expect(screen.queryByRole('alert')).toBeNull()
})

it('lets in who signed in by a link in another tab', async () => {
  renderPage()
  await screen.findByLabelText('Token')
  server.isOpen = true
  fireEvent.focus(window)
  await screen.findByLabelText('Message')
  await waitFor(() => expect(start).toHaveBeenCalled())
})

it('offers the same link again when the server could not be reached', async () => {
  server.isDown = true
  openLink('once')
  await screen.findByText(/Cannot reach the server/)
  server.isDown = false
  fireEvent.click(screen.getByRole('button', { name: 'Try again' }))
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
  expect(start).toHaveBeenCalled()
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
