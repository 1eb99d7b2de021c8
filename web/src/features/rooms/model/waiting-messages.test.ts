import { expect, it } from 'vitest'
import type { Tape } from '@/lib/api/types'
import { placeOf, waitingMessages } from './waiting-messages'

type Cell = Tape['cells'][number]

const cell = (id: string, message_id: string, status: Cell['status'], ...runs: string[]): Cell => ({
  id,
  message_id,
  status,
  agents: ['a'],
  kind: 'sequential',
  reason: 'priority',
  round: 0,
  runs: runs.map((run) => ({ id: run, agent_id: 'a' })),
})

const cells = [
  cell('q3', 'now', 'running', 'r1'),
  cell('q5', 'now', 'queued', 'r2'),
  cell('q9', 'two', 'queued', 'r4'),
  cell('q7', 'one', 'queued', 'r3'),
  cell('p1', 'one', 'planned'),
]

it('lists the messages of which nothing has started, in the order of the queue', () => {
  expect(waitingMessages(cells)).toEqual([
    { id: 'two', runs: ['r4'], cells: [] },
    { id: 'one', runs: ['r3'], cells: ['p1'] },
  ])
})

it('counts what is before a run by the queue, not by when it was posted', () => {
  expect([placeOf(cells, 'r4'), placeOf(cells, 'r3'), placeOf(cells, 'gone')]).toEqual([2, 3, -1])
})
