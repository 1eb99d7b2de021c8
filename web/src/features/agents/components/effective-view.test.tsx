// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, render, screen, within } from '@testing-library/react'
import { afterEach, expect, it, vi } from 'vitest'
import { api } from '@/lib/api/client'
import { roomsQuery } from '@/lib/api/queries'
import type { Agent } from '@/lib/api/types'
import type { Effective } from '../model/effective'
import { EffectiveView } from './effective-view'

afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

const agent = { id: 'a', name: 'Ada', provider: 'claude_code', updated_at: 'u' } as unknown as Agent
const tool = { name: 'log', full_name: 'mcp__git__log', description: 'Commits', verdict: 'allow' as const, remembered: false }

function show(status: number, body: unknown): void {
  const response = new Response(null, { status })
  vi.spyOn(api, 'GET').mockResolvedValue((response.ok ? { data: body, response } : { error: body, response }) as never)
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } })
  client.setQueryData(roomsQuery.queryKey, [])
  render(
    <QueryClientProvider client={client}>
      <EffectiveView agent={agent} isChanged={false} />
    </QueryClientProvider>,
  )
}

it('says where each server comes from, what it shadows and what is wrong with it', async () => {
  const effective: Effective = {
    agent_id: 'a',
    provider: { name: 'claude_code', mcp: true },
    built_in: [{ ...tool, name: 'ask_user', full_name: 'mcp__greenroom__ask_user', verdict: 'ask' }],
    servers: [
      {
        name: 'git',
        tier: 'skill',
        skill: 'review',
        source: 'skill',
        transport: 'stdio',
        state: 'used',
        problem: null,
        shadowed: [{ tier: 'agent', skill: null }],
        tools: [tool, { ...tool, name: 'push', full_name: 'mcp__git__push', quarantined: 'its description changed' }],
      },
      { name: 'web', tier: 'project', skill: null, source: 'project', transport: null, state: 'untrusted', problem: { code: 'mcp_untrusted', message: 'Trust it first.' }, shadowed: [], tools: null },
    ],
  }
  show(200, effective)
  const git = within(await screen.findByRole('region', { name: 'MCP server git' }))
  git.getByText('brought by the skill review; overrides the one named by this agent')
  git.getByText('without asking')
  git.getByText('Blocked: its description changed')
  const web = within(screen.getByRole('region', { name: 'MCP server web' }))
  web.getByText('not trusted yet')
  web.getByText('Trust it first.')
  expect(web.queryByRole('list')).toBeNull()
  within(screen.getByRole('region', { name: 'Greenroom’s own tools' })).getByText('asks first')
})

it('says that a provider has no use for servers', async () => {
  show(200, { provider: { name: 'scripted', mcp: false }, servers: [], built_in: [] })
  await screen.findByText(/Demo agent uses no MCP servers/)
  screen.getByText(/No MCP servers/)
})

it('says what went wrong where it cannot be told', async () => {
  show(500, { code: 'internal', detail: 'Something broke.' })
  await screen.findByText('Something broke.')
})
