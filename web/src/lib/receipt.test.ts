import { expect, it } from 'vitest'
import { receiptText } from './receipt'

it('reads the receipt aloud', () => {
  expect(receiptText({ millis: 12, processes: 0, signals: [] })).toBe('It had really stopped after 12 ms.')
  expect(receiptText({ millis: 1200, processes: 2, signals: ['SIGTERM', 'SIGKILL'] })).toBe(
    'It had really stopped after 1.2 s; 2 processes were ended with SIGTERM, SIGKILL.',
  )
  expect(receiptText({ millis: 40, processes: 0, signals: ['interrupt'] })).toContain('by interrupt.')
})
