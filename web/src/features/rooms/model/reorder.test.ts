import { expect, it } from 'vitest'
import { moved } from './reorder'

it.each([
  [['a', 'b', 'c'], 0, 2, ['b', 'c', 'a']],
  [['a', 'b', 'c'], 2, 0, ['c', 'a', 'b']],
  [['a', 'b', 'c'], 1, 1, ['a', 'b', 'c']],
  [['a', 'b', 'c'], 0, 9, ['b', 'c', 'a']],
  [['a', 'b', 'c'], 2, -1, ['c', 'a', 'b']],
])('%j with entry %d at %d is %4$j', (list, from, to, expected) => {
  expect(moved(list, from, to)).toEqual(expected)
})
