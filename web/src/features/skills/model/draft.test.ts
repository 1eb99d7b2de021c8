import { expect, it } from 'vitest'
import type { Skill, SkillSpec } from '@/lib/api/types'
import { draftOf, emptySpec, newParameter, specOf } from './draft'
import { follow, isDirty, specOnly, startEditing } from './editing'
import { countFindings, findingsAt, findingsElsewhere, findingsOfList } from './findings'
import { mergePatch } from './merge-patch'
import { holdsProposal, scorePoints } from './score'

const spec: SkillSpec = {
  name: 'code-review',
  display_name: 'Code review',
  description: 'Finds bugs',
  body: '# Review {{path}}\n',
  category: 'engineering',
  label: null,
  license: null,
  compatibility: null,
  metadata: { source: 'team' },
  parameters: [
    { name: 'path', type: 'file_path', description: 'Where to look', required: true, default: null, choices: [] },
    { name: 'depth', type: 'number', description: null, required: false, default: 2, choices: [] },
    { name: 'strict', type: 'boolean', description: null, required: false, default: false, choices: [] },
    { name: 'language', type: 'choice', description: null, required: false, default: 'de', choices: ['de', 'en'] },
  ],
  mcp_servers: { files: { command: 'files' } as never },
  tools: { allow: ['Read'], ask: [], deny: ['Bash(rm *)'] },
}

const skill = (changes: Partial<Skill> = {}): Skill => ({
  ...spec,
  id: '1',
  version: 3,
  files: [],
  findings: [],
  usage: { offered: 0, invoked: 0, completed: 0, failed: 0, stopped: 0 },
  created_at: '',
  updated_at: '',
  ...changes,
})

it('makes the same skill of what it showed', () => {
  const back = specOf(draftOf(spec))
  expect(back.findings).toEqual([])
  expect(mergePatch(spec as never, back.spec as never)).toEqual({})
})

it('says at the field what cannot be a value', () => {
  const draft = { ...draftOf(emptySpec), servers: '{"a": ', metadata: '[1]' }
  draft.parameters = [{ ...newParameter(), name: 'depth', kind: 'number', fallback: 'deep' }]
  expect(specOf(draft).findings.map(({ pointer }) => pointer)).toEqual(['/metadata', '/parameters/0/default', '/mcp_servers'])
})

it('takes servers as a whole `.mcp.json` too', () => {
  const { spec: read } = specOf({ ...draftOf(emptySpec), servers: '{"mcpServers":{"files":{"command":"files"}}}' })
  expect(read.mcp_servers).toEqual({ files: { command: 'files' } })
})

it('keeps choices for a choice only, and a default of the right type', () => {
  const row = { ...newParameter(), name: 'x', choices: 'a\nb', fallback: 'true' }
  const read = (kind: 'choice' | 'boolean' | 'text') => specOf({ ...draftOf(emptySpec), parameters: [{ ...row, kind }] }).spec.parameters?.[0]
  expect(read('choice')).toMatchObject({ choices: ['a', 'b'], default: 'true' })
  expect(read('boolean')).toMatchObject({ choices: [], default: true })
  expect(read('text')).toMatchObject({ choices: [], default: 'true' })
})

it('knows whether something was typed', () => {
  const editing = startEditing(skill())
  expect(isDirty(editing)).toBe(false)
  expect(isDirty({ ...editing, draft: { ...editing.draft, servers: '{' } })).toBe(true)
  expect(isDirty({ ...editing, draft: { ...editing.draft, parameters: editing.draft.parameters.slice(1) } })).toBe(true)
})

it('goes along with a newer version where nothing is lost by it, and else asks', () => {
  const clean = startEditing(skill())
  const typed = { ...clean, draft: { ...clean.draft, body: 'mine' } }
  const withFile = skill({ version: 4, files: [{ path: 'a', bytes: 1, executable: false }] })
  expect(follow(typed, withFile)).toEqual({ base: { spec: specOnly(withFile), version: 4 }, draft: typed.draft })
  const theirs = skill({ version: 4, body: 'theirs' })
  expect(follow(clean, theirs)).toMatchObject({ base: { version: 4 }, draft: { body: 'theirs' } })
  expect(follow(typed, theirs)).toBe('conflict')
  expect(follow(typed, skill({ version: 4, body: 'mine' }))).toMatchObject({ base: { version: 4 } })
})

it('puts findings where they belong', () => {
  const at = (pointer: string) => ({ level: 'error' as const, pointer, message: pointer })
  const all = [at('/parameters/1/default'), at('/parameters'), at('/foo'), { ...at('/body'), level: 'warning' as const }, at('/name')]
  expect(findingsAt(all, '/parameters/1')).toEqual([all[0]])
  expect(findingsOfList(all, '/parameters', 2)).toEqual([all[1]])
  expect(findingsElsewhere(all)).toEqual([all[2]])
  expect(countFindings(all)).toBe('4 errors, 1 warning')
})

it('draws the experience from the first rating to the last', () => {
  const round = { id: '', kind: 'rating' as const, version: 1, comment: null, issues: [], improvements: [], score: 5 }
  const rounds = [
    { ...round, experience: 40, created_at: 'c' },
    { ...round, kind: 'accepted' as const, score: null, experience: 20, created_at: 'b' },
    { ...round, experience: 20, created_at: 'a' },
  ]
  expect(scorePoints(rounds).map(({ at, x, y }) => [at, x, y])).toEqual([
    ['a', 0, 0.2],
    ['c', 1, 0.4],
  ])
  expect(scorePoints(rounds.slice(2))[0]?.x).toBe(0.5)
})

it('sees a proposed body in an answer', () => {
  expect(holdsProposal('Here:\n````skill\n# New\n````\n')).toBe(true)
  expect(holdsProposal('a skill block: ```text\n```')).toBe(false)
})
