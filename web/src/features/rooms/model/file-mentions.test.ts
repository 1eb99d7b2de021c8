import { expect, it } from 'vitest'
import type { ProjectEntry } from '@/lib/api/types'
import { completePath, entriesFor, pathAt } from './file-mentions'

const entry = (name: string, kind: ProjectEntry['kind'] = 'file'): ProjectEntry => ({ name, kind, bytes: 1, modified_at: '' })
const listed = { folder: 'src', entries: [entry('pages', 'folder'), entry('main.py'), entry('Makefile'), entry('two words.txt'), entry('loop', 'link')] }

it('a path is typed behind an @ at the beginning of a word', () => {
  expect(pathAt('look at @src/ma', 15)).toEqual({ start: 8, folder: 'src', word: 'ma' })
  expect(pathAt('@', 1)).toEqual({ start: 0, folder: '', word: '' })
  expect(pathAt('ann@example.org', 15)).toBeNull()
  expect(pathAt('@src/a b', 8)).toBeNull()
})

it('files and folders are offered by the beginning of their names, of the folder that is looked into', () => {
  const names = (text: string): string[] => entriesFor(pathAt(text, text.length) ?? { start: 0, folder: '', word: '' }, listed).map(({ name }) => name)
  expect(names('@src/')).toEqual(['pages', 'main.py', 'Makefile'])
  expect(names('@src/ma')).toEqual(['main.py', 'Makefile'])
  expect(names('@other/ma')).toEqual([])
})

it('a file is finished, a folder is gone on into', () => {
  const text = 'see @src/m please'
  const token = pathAt(text, 10)
  if (!token) throw new Error('no token')
  expect(completePath(text, token, 10, entry('main.py'))).toEqual({ text: 'see @src/main.py please', caret: 17 })
  expect(completePath(text, token, 10, entry('pages', 'folder'))).toEqual({ text: 'see @src/pages/ please', caret: 15 })
})
