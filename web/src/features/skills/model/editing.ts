import type { Skill, SkillSpec } from '@/lib/api/types'
import { type Draft, draftOf, specOf } from './draft'
import { isSame } from './merge-patch'

/** What is typed, and the version that it was typed over. */
export interface Editing {
  base: { spec: SkillSpec; version: number }
  draft: Draft
}

export function specOnly(skill: SkillSpec): SkillSpec {
  const { name, description, body, category, label, license, compatibility, metadata, parameters, mcp_servers, tools } = skill
  return { name, display_name: skill.display_name, description, body, category, label, license, compatibility, metadata, parameters, mcp_servers, tools }
}

export function startEditing(skill: Skill): Editing {
  return { base: { spec: specOnly(skill), version: skill.version }, draft: draftOf(skill) }
}

/** Text that no value can be made of counts as changed too. */
export function isDirty({ base, draft }: Editing): boolean {
  const untouched = draftOf(base.spec)
  return (Object.keys(draft) as (keyof Draft)[]).some((key) => !isSame(bare(draft[key]), bare(untouched[key])))
}

function bare(value: Draft[keyof Draft]): unknown {
  return typeof value === 'string' ? value : value.map((row) => ({ ...row, key: 0 }))
}

/**
 * The skill is another version now. Where only its files changed the draft stays as it is on top of it; a draft nobody touched
 * gives way; else both stay, and the person decides.
 */
export function follow(editing: Editing, skill: Skill): Editing | 'conflict' {
  if (skill.version === editing.base.version) return editing
  const spec = specOnly(skill)
  if (isSame(normal(spec), normal(editing.base.spec))) return { ...editing, base: { spec, version: skill.version } }
  if (!isDirty(editing)) return startEditing(skill)
  return isSame(normal(spec), normal(specOf(editing.draft).spec)) ? startEditing(skill) : 'conflict'
}

function normal(spec: SkillSpec): SkillSpec {
  return specOf(draftOf(spec)).spec
}
