// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen } from '@testing-library/react'
import { afterEach, expect, it, vi } from 'vitest'
import { api } from '@/lib/api/client'
import { createQueryClient } from '@/lib/api/queries'
import type { McpServer } from '@/lib/api/types'
import { ServerTools } from './server-tools'

vi.mock('@/lib/highlight', () => ({ highlight: () => Promise.resolve(null) }))
afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

const server = { name: 'small', disabled: false, problem: null } as unknown as McpServer

function show(answer: object): ReturnType<typeof vi.spyOn> {
  const get = vi.spyOn(api, 'GET').mockImplementation(() => Promise.resolve(answer) as never)
  render(
    <QueryClientProvider client={createQueryClient()}>
      <ServerTools server={server} />
    </QueryClientProvider>,
  )
  return get
}

it('b24_a_server_that_does_not_start_says_why_at_once', async () => {
  const get = show({ error: { detail: 'no program “nowhere” was found' }, response: new Response(null, { status: 502 }) })
  expect((await screen.findByRole('alert')).textContent).toContain('No program “nowhere” was found')
  expect(screen.queryByRole('status')).toBeNull()
  expect(get.mock.calls.filter(([path]: unknown[]) => String(path).endsWith('/tools'))).toHaveLength(1)
})

it('b32_instructions_of_a_server_are_markdown', async () => {
  show({ data: { instructions: '# How to use it\n\n- one\n- two', tools: [], quarantined: [] }, response: new Response() })
  const section = await screen.findByRole('region', { name: 'Server instructions' })
  expect(section.querySelectorAll('li')).toHaveLength(2)
})
