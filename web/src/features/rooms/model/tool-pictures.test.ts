import { expect, it } from 'vitest'
import { splitPictures } from './tool-pictures'

it('pictures of tools are found in both shapes, and nothing else is lost', () => {
  const text = { type: 'text', text: 'a chart' }
  expect(splitPictures([{ type: 'image', data: 'aGk=', mimeType: 'image/png' }, text])).toEqual({ pictures: ['data:image/png;base64,aGk='], rest: [text] })
  expect(splitPictures([{ type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'aGk=' } }])).toEqual({ pictures: ['data:image/jpeg;base64,aGk='], rest: null })
})

it('what could run something, or is no picture, stays text', () => {
  for (const block of [{ type: 'image', data: 'aGk=', mimeType: 'image/svg+xml' }, { type: 'image', data: '"><script>', mimeType: 'image/png' }, { type: 'image' }]) {
    expect(splitPictures([block])).toEqual({ pictures: [], rest: [block] })
  }
  expect(splitPictures('plain')).toEqual({ pictures: [], rest: 'plain' })
})
