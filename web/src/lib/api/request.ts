import { answerOf, once } from './client'

/** A request whose answer the caller knows more exactly than the generated types do. Writes carry a key, so that sending them again does them once. */
export function request<T>(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = method === 'GET' ? {} : once()
  if (body !== undefined) headers['Content-Type'] = 'application/json'
  const sent = globalThis.fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  return answerOf(
    sent.then(async (response) => {
      const content: unknown = await response.json().catch(() => undefined)
      return response.ok ? { data: content as T, response } : { error: content, response }
    }),
  )
}
