import { expect, it } from 'vitest'
import { type RunState, emptyRoom, newRun } from '@/feed/state'
import { doingOf } from './members'

function run(id: string, agentId: string, queuedSeq: number, status: RunState['status']): [string, RunState] {
  return [id, { ...newRun(id), agentId, queuedSeq, status }]
}

it('a member is known by what it does, and in which turn it will', () => {
  const runs = new Map([run('1', 'a', 1, 'completed'), run('2', 'b', 2, 'running'), run('3', 'c', 3, 'queued'), run('4', 'd', 4, 'queued')])
  const state = { ...emptyRoom('r', 'e'), runs }
  expect(['a', 'b', 'c', 'd'].map((agent) => doingOf(state, agent))).toEqual([null, 'answering', 'next up', 'queued'])
  const asking = { ...state, runs: new Map([run('2', 'b', 2, 'waiting_for_approval')]) }
  expect(doingOf(asking, 'b')).toBe('waiting for you')
  expect(doingOf(null, 'b')).toBeNull()
})
