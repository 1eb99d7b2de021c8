import { ApiError, explain } from '@/lib/api/client'

/** Where in the form each part of what is sent has its place. */
const places = ['name', 'provider', 'model', 'model_options', 'system_prompt', 'tools', 'skills', 'skill_parameters', 'mcp_servers', 'limits'] as const

export type Place = (typeof places)[number]

export interface FormProblem {
  /** Null where it belongs to the form as a whole. */
  place: Place | null
  /** The part of it, such as `turns` of the limits. */
  part: string | null
  text: string
}

/** The messages of a failed save, and the field of each. */
export function problemOf(error: unknown): FormProblem {
  const text = explain(error)
  const pointer = error instanceof ApiError ? error.pointer : null
  // Some answers name the field in their first word: `limits: a limit is at least 1`. It is as exact as a pointer, or more so.
  const word = /^([a-z_]+):/.exec(text)?.[1]
  const [, first = '', part] = (pointer ?? `/${word ?? ''}`).split('/')
  const place = places.find((one) => one === word) ?? places.find((one) => one === first) ?? null
  return { place, part: place === first ? (part ?? null) : null, text: place === null ? text : withoutAddress(text, pointer) }
}

/** Next to the field its pointer is redundant: “`/name` does not fit: a name must not be empty.” */
function withoutAddress(text: string, pointer: string | null): string {
  const detail = /^`[^`]*` does not fit: (.*)$/s.exec(text)?.[1] ?? (pointer === null ? text : text.replace(/^[a-z_]+: /, ''))
  const sentence = detail.charAt(0).toUpperCase() + detail.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}
