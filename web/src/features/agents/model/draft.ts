import type { Agent, AgentSpec } from '@/lib/api/types'
import { type OptionsDraft, type SomeOptions, optionsFrom, optionsOf } from './model-options'
import { numberOf } from '@/lib/number-of'

export const limitNames = [
  'turns',
  'wall_seconds',
  'first_byte_seconds',
  'idle_seconds',
  'tool_seconds',
  'approval_seconds',
  'output_bytes',
] as const

export type LimitName = (typeof limitNames)[number]
export type PolicyList = 'allow' | 'ask' | 'deny'

/** An agent as it is being written: numbers are text until they are sent, what is empty is left to the server. */
export interface Draft {
  name: string
  provider: string
  model: string
  modelOptions: OptionsDraft
  systemPrompt: string
  tools: Record<PolicyList, readonly string[]>
  skills: readonly string[]
  /** By skill and parameter, as they are sent. */
  skillParameters: SkillValues
  mcpServers: readonly string[]
  limits: Record<LimitName, string>
  /** Settings that this page does not know; they go along untouched. */
  others: Readonly<Record<string, unknown>>
}

export type SkillValues = Readonly<Record<string, Readonly<Record<string, unknown>>>>

type Settings = Omit<AgentSpec, 'limits' | 'tools' | 'model_options' | 'skill_parameters'> & {
  limits?: Partial<Record<LimitName, number | null>>
  tools?: Partial<Record<PolicyList, string[]>>
  model_options?: SomeOptions | null
  skill_parameters?: SkillValues
}

export function draftOf(spec: Settings): Draft {
  const { name, provider, model, model_options, system_prompt, tools, skills, skill_parameters, mcp_servers, limits, ...others } = withoutRecord(spec)
  return {
    name,
    provider,
    model: model ?? '',
    modelOptions: optionsOf(model_options),
    systemPrompt: system_prompt ?? '',
    tools: { allow: tools?.allow ?? [], ask: tools?.ask ?? [], deny: tools?.deny ?? [] },
    skills: skills ?? [],
    skillParameters: skill_parameters ?? {},
    mcpServers: mcp_servers ?? [],
    limits: Object.fromEntries(limitNames.map((limit) => [limit, String(limits?.[limit] ?? '')])) as Draft['limits'],
    others,
  }
}

export function emptyDraft(provider: string, name: string): Draft {
  return draftOf({ name, provider })
}

/** The whole agent as it is sent; what was left empty is `null`, which also clears it where it was set. */
export function specOf(draft: Draft): AgentSpec {
  return {
    ...draft.others,
    name: draft.name.trim(),
    provider: draft.provider,
    model: draft.model.trim() || null,
    model_options: optionsFrom(draft.modelOptions),
    system_prompt: draft.systemPrompt.trim() === '' ? null : draft.systemPrompt,
    tools: { allow: [...draft.tools.allow], ask: [...draft.tools.ask], deny: [...draft.tools.deny] },
    skills: [...draft.skills],
    skill_parameters: valuesFor(draft.skills, draft.skillParameters) as AgentSpec['skill_parameters'],
    mcp_servers: [...draft.mcpServers],
    limits: Object.fromEntries(limitNames.map((limit) => [limit, numberOf(draft.limits[limit])])) as AgentSpec['limits'],
  }
}

/** Only what was changed, so that what somebody else changed meanwhile stays. */
export function patchOf(before: Draft, after: Draft): Partial<AgentSpec> {
  const [old, now] = [specOf(before), specOf(after)]
  const changed = Object.entries(now).filter(([key, value]) => !isSame(old[key as keyof AgentSpec], value))
  return Object.fromEntries(changed) as Partial<AgentSpec>
}

export function isChanged(before: Draft, after: Draft): boolean {
  return Object.keys(patchOf(before, after)).length > 0
}

/** Somebody else saved meanwhile: what was not touched here follows them, what was stays as it is here. */
export function rebase(before: Draft, draft: Draft, fresh: Draft): Draft {
  const kept = Object.entries(draft).filter(([key, value]) => !isSame(before[key as keyof Draft], value))
  return { ...fresh, ...Object.fromEntries(kept) }
}

/** Values of skills that it does not have any more stay behind. */
function valuesFor(skills: readonly string[], values: SkillValues): SkillValues {
  const kept = Object.entries(values).filter(([skill, given]) => skills.includes(skill) && Object.keys(given).length > 0)
  return Object.fromEntries(kept)
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a ?? null) === JSON.stringify(b ?? null)
}

/** Fields added by the server are not settings. */
export function withoutRecord<T extends object>(agent: T): Omit<T, 'id' | 'created_at' | 'updated_at'> {
  const { id: _id, created_at: _created, updated_at: _updated, ...spec } = agent as T & Partial<Agent>
  return spec as Omit<T, 'id' | 'created_at' | 'updated_at'>
}

/** An unused name: `Reviewer`, `Reviewer 2`, `Reviewer 3`. */
export function freeName(wanted: string, agents: readonly Pick<Agent, 'name'>[]): string {
  const taken = new Set(agents.map((agent) => agent.name.toLowerCase()))
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted} ${number}`
    if (!taken.has(name.toLowerCase())) return name
  }
}

/** A name that was only suggested follows the provider; one that a person chose stays. */
export function withName(before: Draft, changes: Partial<Draft>, suggest: (provider: string) => string): Partial<Draft> {
  if (changes.provider === undefined || (before.name !== suggest(before.provider) && before.name.trim() !== '')) return changes
  return { ...changes, name: suggest(changes.provider) }
}
