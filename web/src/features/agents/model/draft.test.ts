import { describe, expect, it } from 'vitest'
import { draftOf, emptyDraft, freeName, isChanged, patchOf, rebase, specOf, withName } from './draft'

const agent = {
  id: 'a',
  name: 'Reviewer',
  provider: 'claude_code',
  model: 'm',
  system_prompt: 'Be kind.',
  tools: { allow: ['Read'], ask: [], deny: ['Bash'] },
  skills: ['review'],
  mcp_servers: ['git'],
  limits: { turns: 3 },
  model_options: { thinking: 'high' as const, max_output_tokens: 4096 },
  skill_parameters: { review: { depth: 3 } },
  later: { setting: true },
  created_at: '2026-11-15T09:30:00.250Z',
  updated_at: '2026-11-15T09:30:00.250Z',
}

describe('a draft', () => {
  it('comes back as it went in, with what this page does not know', () => {
    const { id: _id, created_at: _created, updated_at: _updated, ...spec } = agent
    expect(specOf(draftOf(agent))).toMatchObject({ ...spec, limits: { turns: 3, wall_seconds: null } })
    expect(isChanged(draftOf(agent), draftOf(agent))).toBe(false)
  })

  it('leaves values of a skill behind that it does not have any more', () => {
    const before = draftOf(agent)
    expect(patchOf(before, { ...before, skills: [] })).toEqual({ skills: [], skill_parameters: {} })
    expect(patchOf(before, { ...before, skillParameters: { review: {} } })).toEqual({ skill_parameters: {} })
  })

  it('sends only what was changed, and clears what was emptied', () => {
    const before = draftOf(agent)
    const after = { ...before, model: ' ', limits: { ...before.limits, turns: '' } }
    const patch = patchOf(before, after)
    expect(Object.keys(patch).toSorted()).toEqual(['limits', 'model'])
    expect(patch).toMatchObject({ model: null, limits: { turns: null } })
  })

  it('leaves it to the server to say what is no number', () => {
    const draft = emptyDraft('scripted', 'x')
    expect(specOf({ ...draft, limits: { ...draft.limits, turns: 'many' } }).limits?.turns).toBe('many')
    expect(specOf({ ...draft, limits: { ...draft.limits, turns: ' 12 ' } }).limits?.turns).toBe(12)
  })

  it('follows what somebody else saved, but for what was touched here', () => {
    const before = draftOf(agent)
    const theirs = draftOf({ ...agent, model: 'theirs', system_prompt: 'Theirs' })
    const merged = rebase(before, { ...before, model: 'mine' }, theirs)
    expect(merged).toMatchObject({ model: 'mine', systemPrompt: 'Theirs' })
  })
})

describe('a name', () => {
  it('is one that nobody has', () => {
    expect(freeName('Ada', [])).toBe('Ada')
    expect(freeName('Ada', [{ name: 'ada' }, { name: 'Ada 2' }])).toBe('Ada 3')
  })

  it('follows the provider until a person chose one', () => {
    const suggest = (provider: string): string => provider.toUpperCase()
    const draft = emptyDraft('codex', 'CODEX')
    expect(withName(draft, { provider: 'gemini' }, suggest)).toEqual({ provider: 'gemini', name: 'GEMINI' })
    expect(withName({ ...draft, name: 'Ada' }, { provider: 'gemini' }, suggest)).toEqual({ provider: 'gemini' })
    expect(withName(draft, { model: 'm' }, suggest)).toEqual({ model: 'm' })
  })
})
