import { expect, it } from 'vitest'
import { previewOf } from './preview'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

it('a text is shown in the language of its name', () => {
  expect(previewOf('src/main.rs', bytes('fn main() {}'))).toEqual({ kind: 'text', text: 'fn main() {}', language: 'rust' })
  expect(previewOf('a/Makefile', bytes('all:'))).toEqual({ kind: 'text', text: 'all:', language: '' })
  expect(previewOf('.env', bytes('A=1'))).toMatchObject({ language: '' })
})

it('a text that is cut in the middle of a letter has no broken letter at its end', () => {
  expect(previewOf('a.txt', bytes('Grüße').slice(0, 3))).toMatchObject({ text: 'Gr' })
})

it('what is no text is not shown as one', () => {
  expect(previewOf('a.bin', new Uint8Array([1, 0, 2]))).toEqual({ kind: 'binary' })
  expect(previewOf('logo.PNG', new Uint8Array([0x89, 0]))).toEqual({ kind: 'image' })
  expect(previewOf('logo.svg', bytes('<svg onload="x()"/>'))).toMatchObject({ kind: 'text' })
  expect(previewOf('a.txt', new Uint8Array())).toEqual({ kind: 'empty' })
})
