import { expect, it } from 'vitest'
import type { Provider } from '@/lib/api/types'
import { draftOf, idFrom, settingsFrom } from './settings-draft'

const provider = { kind: 'api', label: 'Anthropic API', source: 'settings', base_url: 'https://proxy.example.org', default_model: 'm', limits: { context_window: 1000 } } as Provider

it('what is not changed is saved as it was, without the key', () => {
  expect(settingsFrom(draftOf(provider))).toEqual({
    key: undefined,
    base_url: 'https://proxy.example.org',
    label: undefined,
    default_model: 'm',
    limits: { context_window: 1000, max_output_tokens: null },
  })
})

it('the address of the server is not taken for one of the workspace', () => {
  expect(draftOf({ ...provider, source: 'configuration' }).baseUrl).toBe('')
})

it('an id is made of the name', () => {
  expect([idFrom('Open Router!'), idFrom(' vLLM @ home '), idFrom('Größe')]).toEqual(['open-router', 'vllm-home', 'gro-e'])
})
