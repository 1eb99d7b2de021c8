import createClient from 'openapi-fetch'
import { budgetSentence } from '../budget'
import { createStore } from '../store'
import type { paths } from './schema'
import type { Problem } from './types'
import { t } from '../texts'

export const api = createClient<paths>({ baseUrl: '', fetch: (request) => globalThis.fetch(request) })

/** What went wrong with a request, in words for people. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly code: string,
    readonly status: number,
    /** Where in what was sent the mistake is (RFC 6901). */
    readonly pointer: string | null = null,
  ) {
    super(message)
    this.name = 'ApiError'
  }

  /** No response: the same request may succeed later. */
  get isOffline(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504
  }
}

interface Answer<T> {
  data?: T
  error?: unknown
  response: Response
}

/** Called for each request that failed with 401. */
export const refusals = createStore(0)

/** The answer's body, or an `ApiError` for anything that is not one. */
export async function answerOf<T>(request: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>
  try {
    answer = await request
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') throw error
    throw new ApiError(t.cannotReachTheServerItMayBe, 'offline', 0)
  }
  if (answer.response.ok) return answer.data as T
  const { status } = answer.response
  const problem = (typeof answer.error === 'object' && answer.error ? answer.error : {}) as Partial<Problem>
  if (status === 401) refusals.set(refusals.get() + 1)
  const detail = detailOf(status, problem)
  throw new ApiError(detail, problem.code ?? `status_${status}`, status, problem.pointer)
}

function detailOf(status: number, problem: Partial<Problem>): string {
  if (status === 401) return t.youveBeenSignedOutSignInThen
  if (problem.code === 'budget_exceeded') return budgetSentence(problem)
  return problem.detail ?? t.theServerAnsweredWithStatus(status)
}

/** What to tell a person about an error of any kind. */
export function explain(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** A new name for one request, so that sending it again does it once. */
export function newKey(): string {
  return crypto.randomUUID?.() ?? `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`
}

/** The header that makes a write safe to send again. */
export function once(): { 'Idempotency-Key': string } {
  return { 'Idempotency-Key': newKey() }
}
