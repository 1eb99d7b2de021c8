import { ApiError, answerOf, newKey } from './client'

/** A door that the generated types do not know yet. Writes carry a key, so that sending them again does them once. */
export function request<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = method === 'GET' ? {} : { 'Idempotency-Key': newKey() }
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const sent = globalThis.fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  return answerOf(
    sent.then(async (response) => {
      const content: unknown = await response.json().catch(() => undefined)
      return response.ok ? { data: content as T, response } : { error: content, response }
    }),
  )
}

/** Null where the server has no such door, or no such thing. */
export async function readIfThere<T>(path: string): Promise<T | null> {
  try {
    return await request<T>('GET', path)
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}
