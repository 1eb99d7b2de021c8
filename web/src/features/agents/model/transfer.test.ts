import { describe, expect, it } from 'vitest'
import type { Agent } from '@/lib/api/types'
import { fromFile, toFile } from './transfer'

const agent = { id: 'i', name: 'A', provider: 'p', model: null, created_at: 'c', updated_at: 'u', model_options: { effort: 'low' } } as unknown as Agent

describe('a file of agents', () => {
  it('holds settings and nothing that belongs to one server', () => {
    expect(fromFile(toFile([agent, agent]))).toEqual({ agents: [0, 1].map(() => ({ name: 'A', provider: 'p', model: null, model_options: { effort: 'low' } })) })
  })

  it('may be one agent or a list', () => {
    expect(fromFile('{"name":"A","provider":"p"}')).toEqual({ agents: [{ name: 'A', provider: 'p' }] })
    expect(fromFile('[{"name":"A","provider":"p"},{"name":"B"},7,null]')).toEqual({ agents: [{ name: 'A', provider: 'p' }] })
  })

  it.each([
    ['hello', 'Not valid JSON'],
    ['{}', 'No agents'],
    ['null', 'No agents'],
    ['[]', 'No agents'],
    ['{"format":"greenroom.agents","version":2,"agents":[]}', 'newer version'],
    [JSON.stringify(Array.from({ length: 201 }, () => ({ name: 'A', provider: 'p' }))), 'at most 200'],
  ])('says what is wrong with %.40s', (text, problem) => {
    expect(fromFile(text)).toEqual({ problem: expect.stringContaining(problem) as string })
  })
})
