import { expect, it } from 'vitest'
import type { RoomSummary } from './api/types'
import { attentionIn } from './attention'
import { summaryOf } from './room-list'

const at = '2026-01-01T00:00:00Z'
const idle: RoomSummary = summaryOf({ id: 'r', name: 'Lobby', agents: [], policy: { when_busy: 'enqueue' } as RoomSummary['policy'], head: 1, created_at: at, updated_at: at })
const busy = { ...idle, busy: true }
const answer = { seq: 2, author: { kind: 'agent' as const, id: 'a', name: 'Reviewer' }, text: 'Done.', created_at: at }

it('an agent that begins to wait, or ends its answer, is worth a word', () => {
  expect(attentionIn([busy], [{ ...busy, waiting: true }])).toEqual([{ roomId: 'r', title: 'Lobby', kind: 'approval', body: 'An agent needs your approval' }])
  expect(attentionIn([busy], [{ ...idle, last_message: answer }])).toEqual([{ roomId: 'r', title: 'Lobby', kind: 'answer', body: 'Reviewer: Done.' }])
})

it('nothing else is: what was so before, what was stopped by a person, rooms that are new here', () => {
  const waiting = { ...busy, waiting: true }
  expect(attentionIn([waiting], [waiting])).toEqual([])
  expect(attentionIn([busy], [{ ...idle, last_message: { ...answer, author: { kind: 'person', name: 'local' } } }])).toEqual([])
  expect(attentionIn([], [waiting])).toEqual([])
})
