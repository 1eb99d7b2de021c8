import { expect, it } from 'vitest'
import { hasOptions, noOptions, optionsFrom, optionsOf, takesOptions } from './model-options'

const usual = {
  thinking: null,
  thinking_budget_tokens: null,
  max_output_tokens: null,
  temperature: null,
  top_p: null,
  stop: [] as string[],
  context_window: null,
  tool_calling: 'native',
  run_tools: 'after',
  parallel: true,
} as const

it('are none where all is as usual, said or not', () => {
  expect(optionsFrom(optionsOf(null))).toBeNull()
  expect(optionsFrom(optionsOf(usual))).toBeNull()
  expect(hasOptions(optionsOf({ ...usual, parallel: false }))).toBe(true)
})

it('come back as they went in', () => {
  const options = { ...usual, thinking: 'high', max_output_tokens: 4096, temperature: 0.5, top_p: 0.9, stop: ['END', ' two words'] as string[], tool_calling: 'xml', run_tools: 'while_streaming', parallel: false } as const
  expect(optionsFrom(optionsOf(options))).toEqual(options)
})

it('leave it to the server to say what is no number', () => {
  expect(optionsFrom({ ...noOptions, context_window: 'large' })?.context_window).toBe('large')
})

it('are for providers whose conversation is kept here', () => {
  const capabilities = { approvals: true, mcp: true, resume: false, skills: true, steer: true, thinking: true }
  expect(takesOptions({ capabilities })).toBe(true)
  expect(takesOptions({ capabilities: { ...capabilities, resume: true } })).toBe(false)
  expect(takesOptions({ capabilities: { ...capabilities, mcp: false } })).toBe(false)
})
