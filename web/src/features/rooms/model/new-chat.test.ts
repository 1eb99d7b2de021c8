import { describe, expect, it } from 'vitest'
import type { Agent, Provider } from '@/lib/api/types'
import { agentsForChat, titleFrom } from './new-chat'

describe('the title of a new chat', () => {
  it('is the first words of its first message', () => {
    expect(titleFrom('Fix the parser')).toBe('Fix the parser')
    expect(titleFrom('\n## Fix the parser\nIt loses frames')).toBe('Fix the parser')
    expect(titleFrom('Could you please look at the parser, because something loses the last frame')).toBe('Could you please look at the parser, because something…')
    expect(titleFrom('x'.repeat(100))).toBe(`${'x'.repeat(60)}…`)
  })

  it('is nothing where there are no words', () => {
    expect(titleFrom(' \n ')).toBeNull()
  })
})

describe('the agents of a new chat', () => {
  const agents = [
    { id: 'demo', provider: 'scripted' },
    { id: 'missing', provider: 'codex' },
    { id: 'real', provider: 'claude_code' },
  ] as Agent[]
  const providers = [
    { id: 'scripted', state: 'ready' },
    { id: 'codex', state: 'not_installed' },
    { id: 'claude_code', state: 'ready' },
  ] as Provider[]

  it('are those of the last one, as far as they still exist', () => {
    expect(agentsForChat(agents, providers, ['gone', 'missing'])).toEqual(['missing'])
  })

  it('else one that can answer, a model first', () => {
    expect(agentsForChat(agents, providers, [])).toEqual(['real'])
    expect(agentsForChat(agents.slice(0, 2), providers, ['gone'])).toEqual(['demo'])
    expect(agentsForChat([], providers, [])).toEqual([])
  })
})
