import { answerOf, api, once } from '@/lib/api/client'
import type { Project, ProjectChange, ProjectSpec } from '@/lib/api/types'

export function createProject(spec: ProjectSpec): Promise<Project> {
  return answerOf(api.POST('/api/projects', { params: { header: once() }, body: spec }))
}

export function changeProject(id: string, change: ProjectChange): Promise<Project> {
  return answerOf(api.PATCH('/api/projects/{id}', { params: { path: { id }, header: once() }, body: change }))
}

export async function deleteProject(id: string): Promise<void> {
  await answerOf(api.DELETE('/api/projects/{id}', { params: { path: { id }, header: once() } }))
}
