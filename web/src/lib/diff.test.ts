import { expect, it } from 'vitest'
import { diffLines } from './diff'

const show = (before: string, after: string): string =>
  diffLines(before, after)
    .map(({ kind, text }) => `${{ same: ' ', added: '+', removed: '-' }[kind]}${text}`)
    .join('\n')

it('shows what changes and keeps what does not', () => {
  expect(show('a\nb\nc\nd\n', 'a\nx\nc\nd\ne\n')).toBe(' a\n-b\n+x\n c\n d\n+e')
})

it('takes nothing as the beginning or the end', () => {
  expect(show('', 'a\nb')).toBe('+a\n+b')
  expect(show('a', '')).toBe('-a')
  expect(show('same', 'same')).toBe(' same')
})

it('gives both texts back', () => {
  const before = 'one\ntwo\nthree\ntwo\nfour'
  const after = 'two\nthree\nfive\ntwo\nsix'
  const lines = diffLines(before, after)
  const pick = (kind: string) => lines.filter((line) => line.kind === 'same' || line.kind === kind).map((line) => line.text)
  expect(pick('removed').join('\n')).toBe(before)
  expect(pick('added').join('\n')).toBe(after)
})
