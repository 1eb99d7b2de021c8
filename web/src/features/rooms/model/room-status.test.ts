import { describe, expect, it } from 'vitest'
import { type Message, emptyRoom, newRun } from '@/feed/state'
import type { RoomSummary } from '@/lib/api/types'
import { summaryOf } from '@/lib/room-list'
import { isUnread } from './read-marks'
import { lineOf } from './room-status'

const at = '2026-01-01T00:00:00Z'
const quiet: RoomSummary = summaryOf({ id: 'r', name: 'Lobby', agents: [], policy: { when_busy: 'enqueue' } as RoomSummary['policy'], head: 9, created_at: at, updated_at: at })

function answer(text: string): Message {
  const parts = [{ type: 'text' as const, text }]
  return { id: 'm', seq: 7, author: { kind: 'agent', id: 'a' }, runId: 'x', status: 'streaming', parts, attachments: [], createdAt: at }
}

describe('a line of the list of rooms', () => {
  it('is told by the server for a room that is not open here', () => {
    const last_message = { seq: 5, author: { kind: 'person' as const, name: 'local' }, text: '# **Hello**\nthere', created_at: at }
    expect(lineOf({ ...quiet, busy: true, last_message }, null)).toEqual({ status: 'working', text: 'You: Hello', time: at, answer: 0 })
    expect(lineOf({ ...quiet, busy: true, waiting: true, last_message }, null).text).toBe('Needs your approval')
    expect(lineOf(quiet, null)).toEqual({ status: 'idle', text: '', time: at, answer: 0 })
  })

  it('follows every word of a room that is', () => {
    const state = { ...emptyRoom('r', 'e'), messages: new Map([['m', answer('One `two`')]]), order: ['m'] }
    const running = { ...state, runs: new Map([['x', { ...newRun('x'), status: 'running' as const }]]) }
    expect(lineOf(quiet, running)).toMatchObject({ status: 'working', text: 'One two', answer: 7 })
    const failed = { ...state, runs: new Map([['x', { ...newRun('x'), status: 'failed' as const }]]) }
    expect(lineOf(quiet, failed).status).toBe('failed')
  })

  it('b6: loses the marks of Markdown, and nothing of a name', () => {
    const said = (text: string): string => lineOf({ ...quiet, last_message: { seq: 5, author: { kind: 'agent', id: 'a', name: 'A' }, text, created_at: at } }, null).text
    expect(said('> **Call** `my_function_name` with 2 * 3 and `a_b`')).toBe('Call my_function_name with 2  3 and a_b')
    expect(said('## C# and snake_case_names')).toBe('C# and snake_case_names')
  })

  it('is unread where an agent spoke after one left, and not in a room one was never in', () => {
    expect(isUnread(7, 6)).toBe(true)
    expect(isUnread(7, 7)).toBe(false)
    expect(isUnread(7, undefined)).toBe(false)
    expect(isUnread(0, 6)).toBe(false)
  })
})
