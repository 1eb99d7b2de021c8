import type { AgentSpec, Provider } from '@/lib/api/types'
import { numberOf } from '@/lib/number-of'

type ModelOptions = NonNullable<AgentSpec['model_options']>

export type SomeOptions = Partial<ModelOptions>
export type OptionName = keyof ModelOptions

/** Each as text while it is written; empty is as the server has it. */
export type OptionsDraft = Readonly<Record<OptionName, string>>

/** The defaults; setting them explicitly has no effect. */
const usual: Readonly<Record<OptionName, string>> = {
  thinking: '',
  thinking_budget_tokens: '',
  max_output_tokens: '',
  temperature: '',
  top_p: '',
  stop: '',
  context_window: '',
  tool_calling: 'native',
  run_tools: 'after',
  parallel: 'true',
}

const names = Object.keys(usual) as OptionName[]

export const noOptions = optionsOf(null)

export function optionsOf(options: SomeOptions | null | undefined): OptionsDraft {
  const said = (name: OptionName): string => {
    const value = options?.[name] ?? ''
    return Array.isArray(value) ? value.join('\n') : String(value)
  }
  return Object.fromEntries(names.map((name) => [name, said(name) === usual[name] ? '' : said(name)])) as OptionsDraft
}

export function hasOptions(draft: OptionsDraft): boolean {
  return names.some((name) => draft[name].trim() !== '')
}

/** Null where none is set: only providers that take options may be sent any. */
export function optionsFrom(draft: OptionsDraft): ModelOptions | null {
  if (!hasOptions(draft)) return null
  return {
    thinking: (draft.thinking || null) as ModelOptions['thinking'],
    thinking_budget_tokens: numberOf(draft.thinking_budget_tokens),
    max_output_tokens: numberOf(draft.max_output_tokens),
    temperature: numberOf(draft.temperature),
    top_p: numberOf(draft.top_p),
    stop: draft.stop.split('\n').filter((line) => line.trim() !== ''),
    context_window: numberOf(draft.context_window),
    tool_calling: (draft.tool_calling || usual.tool_calling) as ModelOptions['tool_calling'],
    run_tools: (draft.run_tools || usual.run_tools) as ModelOptions['run_tools'],
    parallel: draft.parallel !== 'false',
  }
}

/**
 * Whether a provider asks a model's API by itself. The list of providers does not say so; but those are the ones that use MCP servers
 * and keep no session of their own, because the loop and the conversation are the server's.
 */
export function takesOptions({ capabilities }: Pick<Provider, 'capabilities'>): boolean {
  return capabilities.mcp && !capabilities.resume
}
