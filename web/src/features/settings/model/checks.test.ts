import { expect, it } from 'vitest'
import { type Check, worstFirst } from './checks'

it('puts what is wrong first and keeps the order else', () => {
  const check = (name: string, status: Check['status']): Check => ({ name, status, detail: '' })
  const sorted = worstFirst([check('a', 'ok'), check('b', 'warn'), check('c', 'fail'), check('d', 'ok'), check('e', 'fail')])
  expect(sorted.map(({ name }) => name).join('')).toBe('cebad')
})
