import { ApiError, explain } from '@/lib/api/client'

export interface EntryProblem {
  /** The key of the entry that it is about, such as `command`; null where it is about the whole. */
  place: string | null
  text: string
}

export function problemOf(error: unknown): EntryProblem {
  const text = explain(error)
  const place = error instanceof ApiError ? (error.pointer?.split('/')[1] ?? null) : null
  const told = /^`[^`]*` does not fit: (.*)$/s.exec(text)?.[1] ?? text
  return { place: place === '' ? null : place, text: told.charAt(0).toUpperCase() + told.slice(1) }
}
