import { expect, it } from 'vitest'
import type { KnownEvent } from '@/feed/event'
import { foldRun } from '@/feed/fold-run'
import { newRun } from '@/feed/state'
import { steeredIn } from './steered'

it('b36_a_message_that_was_added_to_a_running_answer_is_known', () => {
  const status = { type: 'status', data: { status: 'steered', message: 'Reading it', message_id: 'm' }, created_at: '', seq: 1 } as unknown as KnownEvent
  const runs = new Map([['r', foldRun(newRun('r'), status, 0)]])
  expect([...steeredIn(runs)]).toEqual(['m'])
  expect(steeredIn(runs)).toBe(steeredIn(runs))
})
