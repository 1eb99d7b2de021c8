import { expect, it } from 'vitest'
import { hostsFrom } from './hosts'
import { childPath, folderOf, isWithin, nameOf } from './paths'

it('paths are taken apart and put together', () => {
  expect(childPath('', 'a.md')).toBe('a.md')
  expect(childPath('docs', 'a.md')).toBe('docs/a.md')
  expect([folderOf('docs/old/a.md'), nameOf('docs/old/a.md')]).toEqual(['docs/old', 'a.md'])
  expect([folderOf('a.md'), nameOf('a.md')]).toEqual(['', 'a.md'])
})

it('a folder with a longer name is another one', () => {
  expect(isWithin('docs/a.md', 'docs')).toBe(true)
  expect(isWithin('docs-old/a.md', 'docs')).toBe(false)
})

it('hosts are read from lines, commas and spaces, each once', () => {
  expect(hostsFrom(' pypi.org\n*.npmjs.org, pypi.org ')).toEqual(['pypi.org', '*.npmjs.org'])
})
