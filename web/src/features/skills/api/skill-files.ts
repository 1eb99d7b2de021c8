import { answerOf, api, once } from '@/lib/api/client'
import type { Skill } from '@/lib/api/types'

const asBytes = { bodySerializer: (body: unknown) => body as BodyInit }

export function exportAddress(name: string): string {
  return `/api/skills/${encodeURIComponent(name)}/export`
}

export function fileAddress(name: string, path: string): string {
  return `/api/skills/${encodeURIComponent(name)}/files/${encodeURIComponent(path)}`
}

export function putFile(name: string, path: string, content: Blob, executable: boolean): Promise<Skill> {
  const params = { path: { name, path }, query: { executable }, header: once() }
  const headers = { 'content-type': 'application/octet-stream' }
  return answerOf(api.PUT('/api/skills/{name}/files/{path}', { params, body: content as never, headers, ...asBytes }))
}

export function deleteFile(name: string, path: string): Promise<Skill> {
  return answerOf(api.DELETE('/api/skills/{name}/files/{path}', { params: { path: { name, path }, header: once() } }))
}

export function importZip(archive: Blob, replace: boolean): Promise<Skill> {
  const headers = { 'content-type': 'application/zip' }
  return answerOf(api.POST('/api/skills/import', { params: { query: { replace }, header: once() }, body: archive as never, headers, ...asBytes }))
}

/** Takes in a skill that lies in the data folder. */
export function importFolder(folder: string, replace: boolean): Promise<Skill> {
  return answerOf(api.POST('/api/skills/import', { params: { query: { folder, replace }, header: once() }, body: undefined as never }))
}
