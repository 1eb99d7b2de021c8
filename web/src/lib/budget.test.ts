import { describe, expect, it } from 'vitest'
import type { Budget } from './api/types'
import { budgetSentence, resetText, stoppingBudget } from './budget'

const now = new Date('2026-11-17T12:00:00')

function budget(changes: Partial<Budget>): Budget {
  return { id: 'b', scope: 'workspace', subject_id: null, period: 'day', limit_usd: 2, spent_usd: 2, resets_at: null, created_at: '', ...changes }
}

describe('a refused message', () => {
  it('says what is spent and when the budget resets, in local time', () => {
    const resets_at = new Date('2026-11-17T23:30:00').toISOString()
    const text = budgetSentence({ code: 'budget_exceeded', limit: 2, spent: 2.5, resets_at }, now)
    expect(text).toMatch(/^The budget is used up: \$2\.50 of \$2\.00 spent\. Resets at .*30.*\.$/)
  })

  it('names the day where it is another one, and says where it never resets', () => {
    expect(resetText(new Date('2026-12-01T01:00:00').toISOString(), now)).toMatch(/^Resets on .*1.* at /)
    expect(resetText(null, now)).toBe('Does not reset')
  })

  it('repeats the server where it says no figures', () => {
    expect(budgetSentence({ detail: 'the budget of this room is used up' })).toBe('the budget of this room is used up')
  })
})

describe('the budget that stops a room', () => {
  const room = { id: 'r', agents: ['a', 'b'] }

  it('is that of the workspace, of the room, or of an agent in it', () => {
    for (const changes of [{ scope: 'workspace' }, { scope: 'room', subject_id: 'r' }, { scope: 'agent', subject_id: 'b' }] as const) {
      expect(stoppingBudget([budget(changes)], room)).toMatchObject(changes)
    }
  })

  it('is none that has money left or counts something else', () => {
    const others = [budget({ spent_usd: 1.99 }), budget({ scope: 'room', subject_id: 'other' }), budget({ scope: 'agent', subject_id: 'c' }), budget({ scope: 'user', subject_id: 'u' })]
    expect(stoppingBudget(others, room)).toBeNull()
  })
})
