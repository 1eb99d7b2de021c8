// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, it, vi } from 'vitest'
import { api } from '@/lib/api/client'
import type { McpCallResult, McpTool } from '@/lib/api/types'
import { TryTool } from './try-tool'

afterEach(() => {
  cleanup()
  vi.restoreAllMocks()
})

const tool = {
  name: 'echo',
  full_name: 'mcp__files__echo',
  input_schema: { type: 'object', required: ['text'], properties: { text: { type: 'string', description: 'What to say' }, times: { type: 'integer' } } },
  annotations: {},
} as unknown as McpTool

function answering(status: number, body: unknown): () => unknown {
  const answer = status === 200 ? { data: body } : { error: body }
  const sent = vi.spyOn(api, 'POST').mockResolvedValue({ ...answer, response: new Response(null, { status }) } as never)
  render(
    <QueryClientProvider client={new QueryClient()}>
      <TryTool server="files" tool={tool} />
    </QueryClientProvider>,
  )
  return () => sent.mock.calls
}

it('calls a tool with what was typed, and shows what it says as text', async () => {
  const result: McpCallResult = { content: [{ type: 'text', text: '<b>hi</b>' }, { type: 'image', data: 'AAAA', media_type: 'image/svg+xml' }], structured: null, is_error: false, notices: ['It had ended.'], millis: 12 }
  const sent = answering(200, result)
  fireEvent.change(screen.getByLabelText('text'), { target: { value: 'hi' } })
  fireEvent.change(screen.getByLabelText('times (optional)'), { target: { value: '2' } })
  fireEvent.click(screen.getByRole('button', { name: 'Run' }))
  await screen.findByText('<b>hi</b>')
  screen.getByText('It had ended.')
  screen.getByText('Image type image/svg+xml is not shown.')
  expect(screen.queryByRole('img')).toBeNull()
  expect(sent()).toMatchObject([
    ['/api/mcp-servers/{name}/call', { params: { path: { name: 'files' } }, body: { tool: 'echo', arguments: { text: 'hi', times: 2 } } }],
  ])
})

it('sends nothing that cannot be right', () => {
  const sent = answering(200, {})
  fireEvent.change(screen.getByLabelText('times (optional)'), { target: { value: 'x' } })
  fireEvent.click(screen.getByRole('button', { name: 'Run' }))
  screen.getByText('Must be a number')
  expect(sent()).toEqual([])
})

it('says why a server did not answer', async () => {
  answering(502, { code: 'mcp_failed', detail: 'It does not start.' })
  fireEvent.change(screen.getByLabelText('text'), { target: { value: 'hi' } })
  fireEvent.click(screen.getByRole('button', { name: 'Run' }))
  await screen.findByText('It does not start.')
})
