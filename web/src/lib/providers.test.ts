import { expect, it } from 'vitest'
import type { Provider } from './api/types'
import { firstChoice, inOrder, lackOf } from './providers'

const provider = (name: string, state: Provider['state']): Provider => ({ id: name, name, state }) as Provider

it('b26: says what an agent lacks, a key or a program', () => {
  expect(lackOf(provider('anthropic', 'needs_key'))).toBe('API key missing')
  expect(lackOf(provider('codex', 'not_installed'))).toBe('Not installed')
  expect(lackOf(provider('scripted', 'ready'))).toBeNull()
})

it('has what can answer first, and offers it to a newcomer', () => {
  const all = [provider('codex', 'not_installed'), provider('scripted', 'ready'), provider('anthropic', 'ready')]
  expect(inOrder(all).map(({ name }) => name)).toEqual(['anthropic', 'scripted', 'codex'])
  expect(firstChoice(all)).toBe('anthropic')
  expect(firstChoice([provider('codex', 'not_installed')])).toBe('scripted')
})
