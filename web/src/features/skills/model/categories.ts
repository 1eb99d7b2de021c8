import type { SkillSummary } from '@/lib/api/types'

export interface Category {
  /** Null for those that have none. */
  name: string | null
  skills: SkillSummary[]
}

/** By category in the order of the alphabet; those without one come last. */
export function byCategory(skills: readonly SkillSummary[]): Category[] {
  const names = new Set(skills.map((skill) => skill.category ?? null))
  return [...names]
    .map((name) => ({ name, skills: skills.filter((skill) => (skill.category ?? null) === name) }))
    .toSorted((a, b) => (a.name === null ? 1 : b.name === null ? -1 : a.name.localeCompare(b.name)))
}

/** Every word has to be somewhere in it. */
export function matching(skills: readonly SkillSummary[], text: string): SkillSummary[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  return skills.filter(({ name, display_name: shown, description, category }) => {
    const all = `${name} ${shown ?? ''} ${description} ${category ?? ''}`.toLowerCase()
    return words.every((word) => all.includes(word))
  })
}
