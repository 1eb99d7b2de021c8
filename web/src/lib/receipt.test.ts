import { expect, it } from 'vitest'
import { receiptText } from './receipt'

it('says how long stopping took and what it ended, where there is something to say', () => {
  expect(receiptText({ millis: 0, processes: 0, signals: [] })).toBeNull()
  expect(receiptText({ millis: 12, processes: 0, signals: ['interrupt'] })).toBeNull()
  expect(receiptText({ millis: 4000, processes: 0, signals: [] })).toBe('Took 4.0 s to stop')
  expect(receiptText({ millis: 12, processes: 1, signals: [] })).toBe('1 process ended')
  expect(receiptText({ millis: 1200, processes: 2, signals: ['SIGTERM', 'SIGKILL'] })).toBe('Took 1.2 s to stop; 2 processes ended with SIGTERM, SIGKILL')
})
