// @vitest-environment jsdom
import { cleanup, render } from '@testing-library/react'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { type Message, newRun } from '@/feed/state'
import { LiveLine } from './live-line'

const connection = vi.hoisted(() => ({ state: 'connected' }))
vi.mock('@/feed/use-feed', () => ({ useConnection: () => connection }))

const message: Message = { id: 'm', seq: 1, author: { kind: 'agent', id: 'a' }, runId: 'r', status: 'streaming', parts: [{ type: 'text', text: 'Hi' }], attachments: [], createdAt: '2026-01-01T00:00:00Z' }
const run = { ...newRun('r'), status: 'running' as const, startedAt: '2026-01-01T00:00:00Z' }

beforeEach(() => {
  vi.useFakeTimers({ now: new Date('2026-01-01T00:01:00Z') })
})
afterEach(() => {
  cleanup()
  vi.useRealTimers()
  connection.state = 'connected'
})

it('says what is done, and for how long', () => {
  const { container } = render(<LiveLine message={message} run={run} />)
  expect(container.textContent).toBe('Writing…1 min 00 s')
})

it('b34_counts_from_the_question_while_it_waits', () => {
  const approval = { id: 'a', runId: 'r', toolUseId: null, name: 'Bash', input: {}, requestedAt: '2026-01-01T00:00:55Z', expiresAt: '', isQuestion: false, pattern: null, partsBefore: 0, decision: null, isRemembered: false }
  const { container } = render(<LiveLine message={message} run={{ ...run, status: 'waiting_for_approval', approvals: [approval] }} />)
  expect(container.textContent).toBe('Waiting for you5.0 s')
})

it('b15_counts_nothing_without_a_connection', () => {
  connection.state = 'reconnecting'
  const { container } = render(<LiveLine message={message} run={run} />)
  expect(container.textContent).not.toMatch(/\d/)
  expect(container.querySelector('[data-status=working]')).toBeNull()
})
