import { expect, it } from 'vitest'
import { isSame, mergePatch } from './merge-patch'

it('names only what changed', () => {
  expect(mergePatch({ a: 1, b: [1, 2], c: null }, { a: 1, b: [1, 3], c: null })).toEqual({ b: [1, 3] })
  expect(mergePatch({ a: 'x' }, { a: 'x' })).toEqual({})
})

it('says null for what is gone, inside objects too', () => {
  const before = { servers: { files: { command: 'a', env: { X: '1' } }, git: { command: 'b' } } }
  const after = { servers: { files: { command: 'a', env: {} } } }
  expect(mergePatch(before, after)).toEqual({ servers: { files: { env: { X: null } }, git: null } })
})

it('does not take a list for an object, nor null for something', () => {
  expect(mergePatch({ a: {}, b: null }, { a: [], b: undefined })).toEqual({ a: [] })
  expect(isSame({ a: [] }, { a: {} })).toBe(false)
})
