import { ApiError } from './api/client'
import type { Problem } from './api/types'
import { t } from './texts'

export interface SentBody {
  /** The text of the response. */
  done: Promise<string>
  cancel: () => void
}

/** Posts a file or a form. `onProgress` gets the sent fraction, from 0 to 1, which `fetch` cannot report. */
export function sendBody(address: string, body: File | FormData, timeoutMinutes: number, onProgress: (share: number) => void): SentBody {
  const request = new XMLHttpRequest()
  const done = new Promise<string>((resolve, reject) => {
    request.upload.addEventListener('progress', ({ loaded, total }) => total > 0 && onProgress(loaded / total))
    request.addEventListener('load', () => {
      if (request.status >= 200 && request.status < 300) resolve(request.responseText)
      else reject(problemFrom(request.status, request.responseText))
    })
    const lost = (): void => reject(new ApiError(t.theConnectionWasLostDuringTheUpload, 'offline', 0))
    for (const name of ['error', 'timeout', 'abort'] as const) request.addEventListener(name, lost)
  })
  request.open('POST', address)
  request.timeout = timeoutMinutes * 60_000
  // The browser itself sets the type of a form, with its boundary.
  if (body instanceof File) request.setRequestHeader('content-type', body.type || 'application/octet-stream')
  // Pages of other sites cannot add it: the server asks for it with types such as text/plain.
  request.setRequestHeader('x-requested-with', 'XMLHttpRequest')
  request.send(body)
  return { done, cancel: () => request.abort() }
}

function problemFrom(status: number, text: string): ApiError {
  let problem: Partial<Problem> = {}
  try {
    problem = JSON.parse(text) as Partial<Problem>
  } catch {
    // The response is not from the server itself, so only the status is known.
  }
  const detail = problem.detail ?? t.theServerAnsweredWithStatus(status)
  return new ApiError(detail, problem.code ?? `status_${status}`, status)
}
