// @vitest-environment jsdom
import { afterEach, expect, it } from 'vitest'
import { keepUploads, keptUploads } from './kept-uploads'
import type { Upload } from './uploads'

afterEach(() => localStorage.clear())

const attachment = { name: 'a.png', media_type: 'image/png', url: '/api/uploads/1' }
const there: Upload = { key: 1, name: 'a.png', size: 9, preview: 'blob:x', share: 1, problem: null, attachment }
const coming: Upload = { ...there, key: 2, name: 'b', attachment: null, share: 0.5 }

it('b21: files that were uploaded come back after a reload, with a picture that still exists', () => {
  keepUploads('r', [there, coming])
  expect(keptUploads('r', () => 7)).toEqual([{ ...there, key: 7, preview: '/api/uploads/1' }])
  expect(keptUploads('other', () => 7)).toEqual([])
})

it('nothing is kept once they were sent', () => {
  keepUploads('r', [there])
  keepUploads('r', [])
  expect(localStorage.length).toBe(0)
})
