// @vitest-environment jsdom
import { cleanup, fireEvent, render, screen } from '@testing-library/react'
import { afterEach, expect, it, vi } from 'vitest'
import type { ToolPart } from '@/feed/state'
import { ToolCard } from './tool-card'

vi.mock('@tanstack/react-router', () => ({ Link: ({ params, children }: { params: { roomId: string }; children: string }) => <a href={params.roomId}>{children}</a> }))
vi.mock('@/lib/highlight', () => ({ highlight: () => Promise.resolve(null) }))
afterEach(cleanup)

const call: ToolPart = { type: 'tool', tool_use_id: 't', name: 'Bash', input: { cmd: 'rm -rf /tmp/x' }, output: '', result: null }

it('b13_a_call_that_waits_has_nothing_to_open', () => {
  render(<ToolCard call={call} isLive isWaiting />)
  const head = screen.getByRole<HTMLButtonElement>('button', { name: /Bash/ })
  expect(head.disabled).toBe(true)
  expect(head.getAttribute('aria-expanded')).toBe('false')
})

it('b2_shows_the_input_that_ran_and_not_the_one_it_replaced', () => {
  const done = { ...call, result: { content: 'ok', is_error: false } }
  const { container } = render(<ToolCard call={done} isLive={false} isWaiting={false} editedInput={{ cmd: 'echo safe' }} />)
  fireEvent.click(screen.getByRole('button', { name: /echo safe/ }))
  expect(container.textContent).not.toContain('rm -rf')
})

it('stays closed while it runs, and opens when it fails', () => {
  const { rerender } = render(<ToolCard call={{ ...call, output: 'line' }} isLive isWaiting={false} />)
  expect(screen.getByRole('button', { name: /Bash/ }).getAttribute('aria-expanded')).toBe('false')
  rerender(<ToolCard call={{ ...call, output: 'line', result: { content: 'no', is_error: true } }} isLive isWaiting={false} />)
  expect(screen.getByRole('button', { name: /Bash/ }).getAttribute('aria-expanded')).toBe('true')
})

it('b19_pictures_of_a_tool_are_pictures', () => {
  const content = [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }]
  render(<ToolCard call={{ ...call, result: { content, is_error: false } }} isLive={false} isWaiting={false} />)
  fireEvent.click(screen.getByRole('button', { name: /Bash/ }))
  expect(screen.getByRole('img', { name: /From the tool/ }).getAttribute('src')).toBe('data:image/png;base64,aGk=')
})

it('links to the room of the agent that the call started', () => {
  const child = { run_id: 'r', room_id: 'its-room', agent_id: 'a', agent_name: 'Ben' }
  render(<ToolCard call={{ ...call, name: 'delegate', child }} isLive isWaiting={false} />)
  fireEvent.click(screen.getByRole('button', { name: /delegate/ }))
  expect(screen.getByRole('link', { name: /Ben/ }).getAttribute('href')).toBe('its-room')
})
