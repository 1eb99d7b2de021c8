import { expect, it } from 'vitest'
import { rowsOf } from './rows'
import { type Message, type RunState, emptyRoom, newRun } from './state'

const at = (second: number): string => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString()

/** Answers as `[run, began, ended]`; all answer the same message unless told otherwise. */
function room(...answers: [id: string, began: number, ended: number | null, question?: string][]) {
  const messages = new Map<string, Message>()
  const runs = new Map<string, RunState>()
  for (const [index, [id, began, ended, question = 'q']] of answers.entries()) {
    messages.set(id, { id, seq: index + 1, author: { kind: 'agent', id }, runId: `run-${id}`, status: 'complete', parts: [], attachments: [], createdAt: at(began) })
    const status = ended === null ? ('running' as const) : ('completed' as const)
    runs.set(`run-${id}`, { ...newRun(`run-${id}`), queuedSeq: index + 1, messageId: question, streamId: id, status, endedAt: ended === null ? null : at(ended) })
  }
  return rowsOf({ ...emptyRoom('room', 'e'), order: [...messages.keys()], messages, runs }).map((row) => (row.kind === 'together' ? row.ids.join('+') : row.key))
}

it('answers that were written at the same time stand side by side', () => {
  expect(room(['a', 1, 9], ['b', 2, 5], ['c', 6, 8])).toEqual(['a+b+c'])
  expect(room(['a', 1, null], ['b', 2, null])).toEqual(['a+b'])
})

it('answers one after another do not', () => {
  expect(room(['a', 1, 2], ['b', 2, 3], ['c', 4, null])).toEqual(['a', 'b', 'c'])
})

it('nor do answers to different messages', () => {
  expect(room(['a', 1, 9], ['b', 2, 5, 'other'])).toEqual(['a', 'b'])
})
