import { expect, it } from 'vitest'
import type { Row } from '@/feed/rows'
import { newDayAt } from './days'

const times = ['2026-11-16T10:00:00', '2026-11-16T23:00:00', '2026-11-17T08:00:00']
const messages = new Map(times.map((createdAt, index) => [`m${index}`, { createdAt }]))
const message = (index: number): Row => ({ kind: 'message', key: `m${index}`, id: `m${index}` })
const run: Row = { kind: 'run', key: 'r', id: 'r' }

it('a day begins with its first message, whatever lies between', () => {
  const rows = [message(0), message(1), run, message(2)]
  expect(rows.map((_, index) => newDayAt(rows, index, messages))).toEqual([times[0], null, null, times[2]])
})
