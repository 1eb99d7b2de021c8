import { expect, it } from 'vitest'
import { quoted, withInsert } from './composer-insert'

it('text that is put into the composer loses nothing that was typed', () => {
  expect(withInsert('', 'back')).toBe('back')
  expect(withInsert('half a thought \n', 'back')).toBe('half a thought\n\nback')
})

it('quotes every line', () => {
  expect(quoted('one\n\ntwo\n')).toBe('> one\n>\n> two\n\n')
})
