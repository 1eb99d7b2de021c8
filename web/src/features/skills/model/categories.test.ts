import { expect, it } from 'vitest'
import type { SkillSummary } from '@/lib/api/types'
import { byCategory, matching } from './categories'

const skill = (name: string, category: string | null, description = ''): SkillSummary => ({
  id: name,
  name,
  category,
  description,
  parameters: [],
  version: 1,
  file_count: 0,
  needs_review: false,
  usage: { offered: 0, invoked: 0, completed: 0, failed: 0, stopped: 0 },
  created_at: '',
  updated_at: '',
})

it('groups by category, those without one last', () => {
  const groups = byCategory([skill('a', null), skill('b', 'writing'), skill('c', 'engineering'), skill('d', 'writing')])
  expect(groups.map(({ name, skills }) => [name, skills.map((one) => one.name)])).toEqual([
    ['engineering', ['c']],
    ['writing', ['b', 'd']],
    [null, ['a']],
  ])
})

it('finds by every word, wherever it stands', () => {
  const all = [skill('code-review', 'engineering', 'Finds bugs'), skill('letters', null, 'Writes to people')]
  expect(matching(all, ' BUGS review ').map(({ name }) => name)).toEqual(['code-review'])
  expect(matching(all, 'bugs letters')).toEqual([])
  expect(matching(all, '')).toHaveLength(2)
})
