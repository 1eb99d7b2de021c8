import { queryOptions } from '@tanstack/react-query'
import { answerOf, api, once } from '@/lib/api/client'
import { queryKeys } from '@/lib/api/query-keys'
import type { Skill, SkillCheck, SkillSpec, SkillVersion, SkillVersionSummary } from '@/lib/api/types'
import type { JsonObject } from '../model/merge-patch'

export function skillQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.skills.one(name),
    queryFn: (): Promise<Skill> => answerOf(api.GET('/api/skills/{name}', { params: { path: { name } } })),
  })
}

/** Newest first. */
export function versionsQuery(name: string) {
  return queryOptions({
    queryKey: queryKeys.skills.versions(name),
    queryFn: async (): Promise<SkillVersionSummary[]> =>
      (await answerOf(api.GET('/api/skills/{name}/versions', { params: { path: { name } } }))).versions,
  })
}

/** One version, and how it differs from another. No version ever changes. */
export function versionQuery(name: string, version: number, against: number | null) {
  return queryOptions({
    queryKey: queryKeys.skills.version(name, version, against),
    staleTime: Infinity,
    queryFn: (): Promise<SkillVersion> =>
      answerOf(
        api.GET('/api/skills/{name}/versions/{version}', { params: { path: { name, version }, query: { against: against ?? undefined } } }),
      ),
  })
}

export function createSkill(spec: SkillSpec): Promise<Skill> {
  return answerOf(api.POST('/api/skills', { params: { header: once() }, body: spec }))
}

/** Fails with a conflict if the skill is no longer at version `base`. */
export function changeSkill(name: string, patch: JsonObject, base: number, note: string): Promise<Skill> {
  const params = { path: { name }, query: { base, note: note.trim() || undefined }, header: once() }
  return answerOf(api.PATCH('/api/skills/{name}', { params, body: patch as never }))
}

export async function deleteSkill(name: string): Promise<void> {
  await answerOf(api.DELETE('/api/skills/{name}', { params: { path: { name }, header: once() } }))
}

/** What is wrong with a skill, and how a run would get it; nothing is kept. */
export function checkSkill(what: { text: string } | { skill: SkillSpec }, signal?: AbortSignal): Promise<SkillCheck> {
  return answerOf(api.POST('/api/skills/check', { body: what, signal }))
}

export function restoreVersion(name: string, version: number): Promise<Skill> {
  return answerOf(api.POST('/api/skills/{name}/versions/{version}/restore', { params: { path: { name, version }, header: once() } }))
}

/** Turns on what an imported skill asks for. Fails with a conflict if the skill is no longer at this version. */
export function acceptSkill(name: string, version: number): Promise<Skill> {
  return answerOf(api.POST('/api/skills/{name}/accept', { params: { path: { name } }, body: { version } }))
}
