import { describe, expect, it } from 'vitest'
import { complete, completionAt, mentionsIn } from './mentions'

const agents = [
  { id: '1', name: 'echo' },
  { id: '2', name: 'Echo Two' },
  { id: '3', name: 'zoë' },
]

describe('mentions', () => {
  it('are found where a name follows an @', () => {
    expect(mentionsIn('@echo and @ZOË, please', agents)).toEqual(['1', '3'])
    expect(mentionsIn('@echo two!', agents)).toEqual(['2'])
    expect(mentionsIn('mail me@echo or @echoes or @nobody', agents)).toEqual([])
  })

  it('are offered while they are typed', () => {
    expect(completionAt('hi @ec', 6, agents)).toEqual({ start: 3, matches: agents.slice(0, 2) })
    expect(completionAt('@', 1, agents)?.matches).toHaveLength(3)
    expect(completionAt('hi @x', 5, agents)).toBeNull()
    expect(completionAt('a@e', 3, agents)).toBeNull()
    expect(completionAt('@echo later', 11, agents)).toBeNull()
  })

  it('are completed with one space behind them', () => {
    const completion = completionAt('hi @ec there', 6, agents)
    expect(completion && complete('hi @ec there', completion, 6, { id: '1', name: 'echo' })).toEqual({
      text: 'hi @echo there',
      caret: 9,
    })
  })
})
