import { ApiError } from '@/lib/api/client'
import type { Attachment, Problem } from '@/lib/api/types'
import { t } from '../texts'

interface UploadRequest {
  done: Promise<Attachment>
  cancel: () => void
}

/** Uploads one file. `onProgress` gets the sent fraction, from 0 to 1, which `fetch` cannot report. */
export function uploadFile(file: File, onProgress: (share: number) => void): UploadRequest {
  const request = new XMLHttpRequest()
  const done = new Promise<Attachment>((resolve, reject) => {
    request.upload.addEventListener('progress', ({ loaded, total }) => total > 0 && onProgress(loaded / total))
    request.addEventListener('load', () => {
      if (request.status === 201) resolve(attachmentFrom(request.responseText))
      else reject(problemFrom(request.status, request.responseText))
    })
    const lost = (): void => reject(new ApiError(t.theConnectionWasLostDuringTheUpload, 'offline', 0))
    for (const name of ['error', 'timeout', 'abort'] as const) request.addEventListener(name, lost)
  })
  request.open('POST', `/api/uploads?name=${encodeURIComponent(file.name)}`)
  request.timeout = 10 * 60_000
  request.setRequestHeader('content-type', file.type || 'application/octet-stream')
  // Pages of other sites cannot add it: the server asks for it with types such as text/plain.
  request.setRequestHeader('x-requested-with', 'XMLHttpRequest')
  request.send(file)
  return { done, cancel: () => request.abort() }
}

function attachmentFrom(text: string): Attachment {
  const { name, media_type, url } = JSON.parse(text) as Attachment
  return { name, media_type, url }
}

function problemFrom(status: number, text: string): ApiError {
  let problem: Partial<Problem> = {}
  try {
    problem = JSON.parse(text) as Partial<Problem>
  } catch {
    // The response is not from the server itself, so only the status is known.
  }
  const detail = problem.detail ?? t.theServerAnsweredWithStatusTryAgain(status)
  return new ApiError(detail, problem.code ?? `status_${status}`, status)
}
