import { expect, it } from 'vitest'
import { readUnified } from './unified-diff'

it('reads what was added and removed, and leaves out its own heads', () => {
  const diff = '--- version 1\n+++ version 2\n@@ -1,3 +1,3 @@\n # Review\n-old\n+new\n \n\\ No newline at end of file\n'
  expect(readUnified(diff)).toEqual([
    { kind: 'same', text: '# Review' },
    { kind: 'removed', text: 'old' },
    { kind: 'added', text: 'new' },
    { kind: 'same', text: '' },
  ])
})

it('takes no line of the text for a head', () => {
  const diff = '--- a\n+++ b\n@@ -1,2 +1,2 @@\n--- name: x\n-@@ -1 +1 @@\n+++ name: y\n+z\n'
  expect(readUnified(diff).map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    'removed -- name: x',
    'removed @@ -1 +1 @@',
    'added ++ name: y',
    'added z',
  ])
})

it('marks the place where something is left out, and tells of files', () => {
  const diff = '@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\nfile scripts/run.sh added (7 bytes)\n'
  expect(readUnified(diff).map(({ kind }) => kind)).toEqual(['removed', 'added', 'place', 'removed', 'added', 'note'])
  expect(readUnified('')).toEqual([])
})
