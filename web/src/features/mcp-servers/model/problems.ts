import { ApiError, explain } from '@/lib/api/client'
import { sentence } from '@/lib/format'

export interface EntryProblem {
  /** The key of the entry that it is about, such as `command`; null where it is about the whole. */
  place: string | null
  text: string
}

export function problemOf(error: unknown): EntryProblem {
  const text = explain(error)
  const pointed = error instanceof ApiError ? error.pointer?.split('/')[1] : undefined
  // Some answers name the key in their first word, instead or as well: `timeout: it must be a number of milliseconds`.
  const [, word, rest] = /^([a-zA-Z]+): (.*)$/s.exec(text) ?? []
  const detail = (!pointed || pointed === word ? rest : undefined) ?? /^`[^`]*` does not fit: (.*)$/s.exec(text)?.[1] ?? text
  return { place: pointed || (word ?? null), text: sentence(detail) }
}
