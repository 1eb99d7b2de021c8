import { queryOptions } from '@tanstack/react-query'
import { ApiError, answerOf, api } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import { type SentBody, sendBody } from '@/lib/send-body'

/** As much of a file as is shown; the rest can be downloaded. */
const previewBytes = 256 * 1024

export interface FileStart {
  content: Uint8Array
  /** Of the whole file. */
  size: number
}

export function contentQuery(id: string, path: string) {
  return queryOptions({ queryKey: queryKeys.projects.content(id, path), queryFn: () => readStart(id, path), retry: false })
}

async function readStart(id: string, path: string): Promise<FileStart> {
  const query = { path, range: `0-${previewBytes - 1}` }
  let range = ''
  const request = api.GET('/api/projects/{id}/files/content', { params: { path: { id }, query }, parseAs: 'arrayBuffer' }).then((answer) => {
    range = answer.response.headers.get('content-range') ?? ''
    return answer
  })
  try {
    const content = new Uint8Array((await answerOf(request)) as unknown as ArrayBuffer)
    return { content, size: Number(/\/(\d+)$/.exec(range)?.[1] ?? content.length) }
  } catch (error) {
    // An empty file has no part that could be asked for.
    if (error instanceof ApiError && error.status === 416) return { content: new Uint8Array(), size: 0 }
    throw error
  }
}

export function contentAddress(id: string, path: string): string {
  return `/api/projects/${id}/files/content?path=${encodeURIComponent(path)}`
}

export function archiveAddress(id: string, path: string): string {
  return `/api/projects/${id}/files/archive?path=${encodeURIComponent(path)}`
}

const mostMinutes = 240

/** Stores one file in a folder of the project; a file of this name is replaced when all has arrived. */
export function uploadToProject(id: string, folder: string, file: File, onProgress: (share: number) => void): SentBody {
  const form = new FormData()
  form.append('file', file, file.name)
  return sendBody(`/api/projects/${id}/files?path=${encodeURIComponent(folder)}`, form, mostMinutes, onProgress)
}

export async function moveFile(id: string, from: string, to: string): Promise<void> {
  await answerOf(api.POST('/api/projects/{id}/files/move', { params: { path: { id } }, body: { from, to } }))
}

export async function deleteFile(id: string, path: string): Promise<void> {
  await answerOf(api.DELETE('/api/projects/{id}/files', { params: { path: { id }, query: { path } } }))
}
