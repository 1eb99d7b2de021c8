import { expect, it } from 'vitest'
import { worstFirst } from './checks'

const check = (name: string, status: 'ok' | 'warn' | 'fail') => ({ name, status, detail: '' })

it('what needs someone comes first', () => {
  const checks = [check('a', 'ok'), check('b', 'warn'), check('c', 'fail'), check('d', 'warn')]
  expect(worstFirst(checks, []).map(({ name }) => name)).toEqual(['c', 'b', 'd', 'a'])
})

it('a provider that is not set up is no warning, one that is broken stays one', () => {
  const shown = worstFirst([check('codex', 'warn'), check('gemini', 'fail'), check('disk', 'ok')], ['codex', 'gemini'])
  expect(shown.map(({ name, level }) => [name, level])).toEqual([['gemini', 'fail'], ['disk', 'ok'], ['codex', 'missing']])
})
